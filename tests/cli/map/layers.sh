. "$TESTS_CLI/lib.sh"
# Layers of names that tell none, and of models that a map gives names to.
layers() {
    printf '%s\n' "$@" >rules.yaml
    gradcmp ls --state exp_avg --map rules.yaml data/megatron/s_base |
        grep -E 'fc2|stage|^layers|output|unit' | sort
    echo
}
layers 'layers: 9' 'rules:' '- rename: decoder\.layers\.([0-9]+)\.mlp\.linear_fc2\.weight' '  to: stage\1.fc2'
layers 'layers: 9' 'rules:' '- rename: decoder\.layers\.([0-9]+)\.mlp\.linear_fc2\.weight' '  to: stage\1.fc2' \
    '- layer: stage([0-9]+)\.fc2' '  index: \1'
layers 'rules:' '- layer: output_layer\.weight' '  l: embedding' '- layer: .*0\.mlp\.linear_fc2\.weight' '  l: 3' \
    '- layer: .*1\.mlp\.linear_fc2\.weight' '  l: head'
layers 'rules:' '- rename: decoder\.layers\.3\.mlp\.linear_fc2\.weight' '  to: units.layers.11.fc2.weight'
# Bounds follow: a fault looks nearer to the loss.
printf '%s\n' 'rules:' '- layer: decoder\.layers\.1\..*' '  l: 4' >rules.yaml
gradcmp --map rules.yaml data/megatron/s_base data/megatron/bug_double_layer1 | tail -n 1
# Transposed on one side only, shapes differ; on both, nothing does.
printf '%s\n' 'rules:' '- transpose: .*linear_fc2\.weight' '  apply: candidate' >rules.yaml
gradcmp --map rules.yaml data/megatron/s_base data/megatron/tp2_perlayer | tail -n 1
sed -i '/apply/d' rules.yaml
gradcmp --map rules.yaml data/megatron/s_base data/megatron/tp2_perlayer | tail -n 1
gradcmp --map rules.yaml data/megatron/s_base data/megatron/bug_zero_layer2 | tail -n 1
