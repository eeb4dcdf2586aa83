# Optimizers alone, which count the same parameters in another order: the shapes tell that.
. "$TESTS_CLI/lib.sh"
try data/torch_save/numbers.pt data/torch_save/numbers_reversed.pt
