# Files of ranks: stages of a pipeline, each with numbers of its own; copies that were never averaged.
. "$TESTS_CLI/lib.sh"
ln -s data/torch_save/* .
gradcmp apart stages | tail -n 1
gradcmp stages apart | tail -n 1
gradcmp apart unreduced | sed -n '/^Causes/,/^Notes/p'
gradcmp apart unreduced | tail -n 1
try unreduced apart
gradcmp ls stages | sed -n '/^Tensors/,$p' | grep 'exp_avg .*layers.1'
gradcmp check unreduced | tail -n 4
