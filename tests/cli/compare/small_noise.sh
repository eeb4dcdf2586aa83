# What is as small as the rounding of its layer is not judged, unless it is the baseline in another
# order, or times a factor: noise is neither.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/small_noise.py"
for kind in noise halves rolled scaled; do
    try --dtype bf16 a.safetensors b_$kind.safetensors >out
    sed -n '1p; /^Causes/,/^$/p' out
    tail -n 3 out
done
try --strict --dtype bf16 a.safetensors b_noise.safetensors | tail -n 3
