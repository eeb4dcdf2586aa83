# Betas and steps of torch's optimizers, of a group or flattened to each parameter.
. "$TESTS_CLI/lib.sh"
ln -s data/dcp/* .
try betas_none betas_flat
