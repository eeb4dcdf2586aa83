# Experts that chose other tokens under rounding fail a pair, unless that is allowed and explains all.
. "$TESTS_CLI/lib.sh"
last() {
    printf '$ gradcmp %s\n' "$*"
    code=0
    gradcmp "$@" >report 2>&1 || code=$?
    sed -n '/^Causes/,/^$/p' report
    tail -n 1 report
    printf '(exit %s)\n\n' "$code"
}
python3 "$TESTS_CLI/compare/routing.py"
last --dtype bf16 a.safetensors b.safetensors
last --dtype bf16 --allow-routing a.safetensors b.safetensors
gradcmp --dtype bf16 --allow-routing --json - a.safetensors b.safetensors | grep '"options"'
echo "- but not a dense weight that is wrong too:"
python3 "$TESTS_CLI/compare/routing.py" dense
last --dtype bf16 --allow-routing a.safetensors b.safetensors
echo "- nor where the router does not differ:"
python3 "$TESTS_CLI/compare/routing.py" still
last --dtype bf16 --allow-routing a.safetensors b.safetensors
echo "- experts in each other's place:"
python3 "$TESTS_CLI/compare/routing.py" slots
last --dtype bf16 a.safetensors b.safetensors
