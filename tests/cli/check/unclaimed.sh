# Tensors of no model and of no optimizer are told, wherever they stand.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/check/unclaimed.py"
for file in beside.pt list.pt pairs.pt many.pt deep.pt none.pt state.pt names.safetensors; do
    try check $file
    gradcmp ls $file | sed -n '/^Notes/,$p'
    try extract -o out.safetensors $file
    rm -f out.safetensors
done
try --state param --allow-same beside.pt beside.pt | sed -n '/^Notes/,$p'
gradcmp check --json - -q beside.pt | grep '"notes"'
