# Copies in files of ranks: the same are written once, others are not chosen among.
. "$TESTS_CLI/lib.sh"
try extract data/torch_save/unreduced -o unreduced.safetensors
try extract data/torch_save/stages -o stages.safetensors
ls
gradcmp stages.safetensors data/torch_save/apart | tail -n 1
