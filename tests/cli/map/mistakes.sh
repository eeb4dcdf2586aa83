. "$TESTS_CLI/lib.sh"
# Each mistake gives one line with file and line, and exit 2.
map() {
    printf '%s\n' "$@" >rules.yaml
    sed 's/^/    | /' rules.yaml
    code=0
    gradcmp --map rules.yaml data/megatron/s_base data/megatron/tp2_perlayer 2>&1 | tail -n 1 || :
    gradcmp --quiet --map rules.yaml data/megatron/s_base data/megatron/tp2_perlayer 2>/dev/null || code=$?
    printf '(exit %s)\n\n' "$code"
}
map 'rules: 3'
map 'rule:' '- rename: a'
map 'rules: []'
map 'rules:' '- a'
map 'rules:' '- to: a'
map 'rules:' '- rename: a' '  split: b'
map 'rules:' '- rename: a' '  too: b'
map 'rules:' '- rename: a'
map 'rules:' '- rename: a' '  to: [b]'
map 'rules:' '- rename: a' '  rename: a' '  to: b'
map 'rules:' '- rename: a(' '  to: b'
map 'rules:' '- rename: a' '  to: b\1'
map 'rules:' '- rename: a' '  to: b\x'
map 'rules:' '- rename: a' '  to: b' '  apply: both'
map 'rules:' '- rename: a' '  to: b' '- rename: a' '  to: c'
map 'rules:' '- split: a' '  into: b'
map 'rules:' '- split: a' '  into: [b, c]' '  parts: [1]'
map 'rules:' '- split: a' '  into: [b, c]' '  groups: 0'
map 'rules:' '- split: a' '  into: [b, c]' '  heads: 4'
map 'rules:' '- split: a' '  into: [b, c, d]' '  heads: 4' '  query_groups: 3'
map 'rules:' '- split: a' '  into: [b, c, d]' '  query_groups: 2'
map 'rules:' '- concat: [a(b), c]' '  to: d\2'
map 'rules:' '- layer: a'
map 'rules:' '- layer: a' '  l: middle'
map 'layers: many' 'rules:' '- layer: a' '  l: head'
map 'layers: 2' 'rules:' '- layer: output.*' '  l: head'
map 'rules:' '- rename: nosuch' '  to: a'
map 'rules:' '- rename: decoder.layers.0' '  to: a'
map 'rules:' '- rename: .*norm.*' '  to: norm'
map 'rules:' '- rename: output_layer.weight' '  to: embedding.word_embeddings.weight'
map 'rules:' '- split: .*linear_fc2.weight' '  into: [a, b]' '  parts: [3, 4]'
map 'rules:' '- split: .*linear_fc2.weight' '  into: [a, b]' '  axis: 2'
map 'rules:' '- transpose: .*final_layernorm.weight'
map 'rules:' '- concat: [output_layer.weight, nosuch]' '  to: a'
map 'rules:' '- concat: [output_layer.weight, decoder.final_layernorm.weight]' '  to: a'
map 'rules:' '- layer: (output_layer).weight' '  index: \1'
try --map nosuch.yaml data/megatron/s_base data/megatron/tp2_perlayer
try ls --map rules.yaml --side left data/megatron/s_base
