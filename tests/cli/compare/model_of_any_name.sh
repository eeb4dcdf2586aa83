# The dict of a model may have any name in a distributed checkpoint, where none is called a model.
. "$TESTS_CLI/lib.sh"
cp -R data/dcp/groups_own actor
chmod -R u+w actor
sed 's/model/actor/g' data/dcp/groups_own/.metadata >actor/.metadata
ln -s data/dcp/groups_own model
gradcmp ls actor | sed -n '/^Tensors/,$p'
for state in param exp_avg; do
    try --state $state --allow-same model actor | grep CONSISTENT
done
# Tensors of nothing that is read are not in objects.
sed 's/model/optim/g; s/optim\.state/optim.stats/g; s/\x05state/\x05stats/g' \
    data/dcp/groups_own/.metadata >actor/.metadata
try --state param --allow-same actor actor
