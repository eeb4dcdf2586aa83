# Modules called like parts of a checkpoint have weights, in files that have names alone; and an
# extracted file is compared with what it was made of.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/module_names.py"
for module in state optimizer sampler; do
    try --state param ${module}_a.safetensors ${module}_b.safetensors | grep CONSISTENT
    gradcmp extract -o $module.safetensors ${module}_a.pt
    for state in param exp_avg; do
        try --state $state --allow-same ${module}_a.pt $module.safetensors | grep CONSISTENT
    done
    try check $module.safetensors | grep CLEAN
done
# Names tell states beside such a module too.
gradcmp ls state.safetensors | sed -n '/^Tensors/,$p'
