# Betas of single parameters are known whatever dict holds the optimizer: one called like a state,
# that of a trainer.
. "$TESTS_CLI/lib.sh"
ln -s data/dcp/groups_own_flat flat
ln -s data/dcp/groups_swapped swapped
for name in app_state state my.state; do
    python3 "$TESTS_CLI/compare/betas_below.py" data/dcp/groups_own own $name
    try -q own flat
    try -q own swapped
    gradcmp ls own | grep exp_avg
    rm -rf own
done
