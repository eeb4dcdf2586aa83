# A parameter that a state dict has under two names is one: numbers and buffers hold it once.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/second_names.py"
gradcmp ls --state exp_avg buffers | sed -n '/exp_avg/p'
try --dtype bf16 numbers buffers | sed -n '/^compared/p; /not compared/p; /^CONSISTENT/,$p'

# Nor does the second one lack the state.
cp named.safetensors again.safetensors
try --dtype bf16 named.safetensors again.safetensors | sed -n '/not compared/,$p'
