# One checkpoint, or series of metrics, under two names proves nothing: `compare` refuses that, the others say so.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/s_base base
copy_checkpoint s_base original
cp -al original linked
try -q base base/iter_0000001
for other in base base/iter_0000001 data/megatron/s_base; do
    try bits base $other
done
try bits original linked
try bits base original
cp -r data/metrics/a events
cp -al events hard
ln events/* one.tfevents
for other in events hard one.tfevents data/metrics/a; do
    try metrics events $other
done
