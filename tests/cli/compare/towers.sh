# Where several towers count layers, the one that fails is named.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/towers.py"
try --dtype bf16 a.safetensors b.safetensors | sed -n '/^Layers/,/^Failing/p; /^INCON/p'
