# Weights are read wherever they stand: beside dicts of other things, in dicts of a model, without a word
# for a model. What is left out is told in the last line where it is much.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/dicts.py"
for name in buffers extra_state flat_run small_model in_model deep_in_model only_in_model names criterion \
    two one averaged averaged_model part trainer \
    any_words beside any_in_model teacher; do
    echo "== $name"
    gradcmp extract -o out.safetensors ${name}_a.pt
    gradcmp ls ${name}_a.pt | sed -n '/^States/,/^$/p'
    rm -f out.safetensors
    try --state param --dtype fp32 ${name}_a.pt ${name}_b.pt | tail -3
    gradcmp --state param --dtype fp32 --allow-same ${name}_a.pt ${name}_a.pt | tail -1
done 2>&1
