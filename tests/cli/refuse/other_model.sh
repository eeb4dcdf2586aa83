# Two models without a name in common: nothing is compared, and a map is the way out.
. "$TESTS_CLI/lib.sh"
try data/betas/mixed.pt data/torch_save/buffers.pt
