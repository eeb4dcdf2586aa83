# Parameters of one side alone that are nothing but zeros: no gradient reached them, and one library
# keeps zeros where another keeps no state.
. "$TESTS_CLI/lib.sh"
d=data/megatron
gradcmp extract $d/s_base -o part.safetensors --exclude 'layers\.2\.|layers\.3\.mlp\.linear_fc2'
try part.safetensors $d/bug_zero_layer2 | sed -n '/^Notes/,$p'
try $d/bug_zero_layer2 part.safetensors | sed -n '/^Notes/,$p'
# Weights that are zero are no gradient.
try --state param part.safetensors $d/bug_zero_layer2 | sed -n '/^Notes/,$p'
# More of one side alone than of both is not read.
try --match 'layers\.[23]\.mlp' part.safetensors $d/bug_zero_layer2 | tail -n 4
