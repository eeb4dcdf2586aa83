# What a factor leaves is measured where sums of squares are too coarse to show it: exact multiples in
# float64, and small ones in float32, leave nothing, and noise that is beyond the bound is seen. So is what was rounded on the way and stored wide again.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/exact_factors.py"
for b in fp64_*.safetensors fp32_*.safetensors; do
    try --dtype "${b%%_*}" "a_${b%%_*}.safetensors" "$b" | sed -n '1p; /^Causes/,/^$/p; /^INCON/p'
done
