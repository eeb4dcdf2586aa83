# A moment that is no tensor of real numbers keeps a comparison of moments from being made, and nothing else.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/unread_state.py"
for name in complex sparse all; do
    echo "== $name"
    gradcmp ls ${name}_a.pt | sed -n '/^Tensors/,$p'
    try check ${name}_a.pt
    try bits --quiet ${name}_a.pt ${name}_b.pt
    try --dtype fp32 ${name}_a.pt ${name}_b.pt
    try --dtype fp32 --exclude spectrum ${name}_a.pt ${name}_b.pt | tail -3
    try --dtype fp32 --state param --allow-same ${name}_a.pt ${name}_a.pt | tail -3
done 2>&1
