. "$TESTS_CLI/lib.sh"
# The worked example: Megatron against the layout of Hugging Face, both ways, from one rank and from
# two tensor-parallel ones. What is equal must be equal to the last bit.
ln -s "$DATA/../../examples/map" map
try --map map/megatron_to_hf.yaml data/megatron/s_base map/hf_style.safetensors
for rules in megatron_to_hf hf_to_megatron; do
    gradcmp --json - --map map/$rules.yaml data/megatron/s_base map/hf_style.safetensors |
        grep -Eo '"(rel|max_abs|verdict)": [^,]*' | sort | uniq -c
    gradcmp --map map/$rules.yaml data/megatron/tp2_perlayer map/hf_style.safetensors | tail -n 1
done

# A wrong layout of heads must fail: queries, keys, values one after another; wrong groups; swapped.
wrong() {
    sed "$1" map/megatron_to_hf.yaml >wrong.yaml
    cmp -s wrong.yaml map/megatron_to_hf.yaml && echo "nothing is wrong"
    code=0
    gradcmp --map wrong.yaml data/megatron/s_base map/hf_style.safetensors >report || code=$?
    grep -E '^ +(fail|shape|missing|extra) +[a-z]' report | head -n 3
    tail -n 1 report
    echo "(exit $code)"
}
wrong 's/heads: arguments.*/{parts: [2, 1, 1]}/; s/{parts\(.*\)}/parts\1/'
wrong 's/heads: arguments.*/parts: [2, 1, 1]\n    groups: 4/'
wrong "s/mlp.gate_proj.weight', 'layers.\\\\1.mlp.up_proj/mlp.up_proj.weight', 'layers.\\\\1.mlp.gate_proj/"
wrong 's/k_proj/K_proj/; s/v_proj/k_proj/; s/K_proj/v_proj/'

# What the other commands see through a map.
try ls --state exp_avg --match 'layers\.0|lm_head' --map map/megatron_to_hf.yaml --side baseline data/megatron/s_base
try ls --map map/megatron_to_hf.yaml data/megatron/s_base
try check --map map/megatron_to_hf.yaml --side baseline data/megatron/tp2_perlayer
try extract --state exp_avg --map map/megatron_to_hf.yaml --side baseline data/megatron/s_base -o hf.safetensors
gradcmp hf.safetensors map/hf_style.safetensors | tail -n 1
