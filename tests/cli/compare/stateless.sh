# What has the compared state on neither side is told, and its share of the model: where files hold no
# weights, what has other states; where the optimizer numbers what it has, the shapes tell how many.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/stateless.py"
try --dtype fp32 other_a.pt other_b.pt | sed -n '/^compared/p; /^Notes/,$p'
try --dtype fp32 few_a.pt few_b.pt | sed -n '/^- not/,/keeps none/p; /^CONS/p'

# transformers' Trainer keeps both in a folder.
for side in a b; do
    mkdir $side
    cp model.safetensors $side/model.safetensors
    cp optimizer_$side.pt $side/optimizer.pt
done
try --dtype fp32 a b | sed -n '/^- not/,/keeps none/p; /^CONS/p'

# Weights that cannot be put together are counted as they are stored.
try --dtype fp32 halves_a.safetensors halves_b.safetensors | sed -n '/^Notes/,$p'
