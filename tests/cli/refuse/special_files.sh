# What lies in a checkpoint and is no file or folder of it is never passed over; an error names the
# file that it is about.
. "$TESTS_CLI/lib.sh"
norm=optimizer.state.exp_avg.norm.weight
spoil() {
    rm -rf spoilt
    cp -RL data/zarr/zarr2_raw spoilt
    chmod -R u+w spoilt
}
cp -RL data/zarr/zarr2_raw whole
cp -RL whole/$norm outside

spoil
rm spoilt/$norm/.zarray
mkdir spoilt/$norm/.zarray
try ls spoilt
spoil
rm spoilt/$norm/.zarray
mkfifo spoilt/$norm/.zarray
try -q whole spoilt
spoil
rm spoilt/$norm/.zarray
ln -s ../../outside/.zarray spoilt/$norm
try check spoilt
spoil
rm -r "spoilt/${norm:?}"
ln -s ../outside spoilt/$norm
try bits -q whole spoilt
# Links that stay inside are followed, and dangling ones hold nothing.
spoil
mv spoilt/$norm spoilt/elsewhere
ln -s elsewhere spoilt/$norm
ln -s nowhere spoilt/dangling
try ls --match norm spoilt | tail -n 4

# msprobe's folders of ranks: one that leads out may be a rank's.
mkdir -p a/step0/rank0 b/step0/rank0
for side in a b; do
    printf '{"task":"statistics","level":"L1","data":{}}' >$side/step0/rank0/dump.json
done
ln -s ../../outside b/step0/rank1
try trace a b 2>&1 | tail -n 5

# A candidate in which a state was lost, whatever it is compared with.
cp data/betas/zero.pt good.pt
cp -RL data/dcp/lost_states lost
try -q good.pt lost
try -q lost good.pt
cp good.pt same.pt
try -q good.pt lost same.pt
