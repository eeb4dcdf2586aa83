# Betas and steps of torch's optimizers, of a group or flattened to each parameter.
. "$TESTS_CLI/lib.sh"
ln -s data/dcp/* .
try betas_none betas_flat
# Adam with weight decay that is not decoupled: part of it is no gradient. AdamW's is none of it.
gradcmp data/torch_save/groups.pt data/torch_save/groups_stream.pt | sed -n '/^Notes/,$p'
