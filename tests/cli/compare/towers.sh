# Where several towers count layers side by side, the one that fails is named.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/towers.py"
table() {
    try --dtype bf16 "$@" | sed -n '/^bound/p; /^Layers/,/^Failing/p; /^- only/p; /^INCON/p; /gradcmp: /p'
    echo
}
table a.safetensors b.safetensors
# Layers of stacks that feed one another follow each other, and what stands between belongs to them.
table c.safetensors d.safetensors
table e.safetensors f.safetensors
# A tower without state is in front of the language model all the same, if one side shows it.
table g.safetensors h.safetensors
table g.safetensors j.safetensors
table i.safetensors h.safetensors
# One side alone tells that a norm is of an encoder, and no head.
table k.safetensors l.safetensors
# More layers than there are, and fewer.
table --layers 9 c.safetensors d.safetensors
table --layers 4 c.safetensors d.safetensors
# Extracted, layers are where they were, also those of a part.
gradcmp extract --match 'decoder' d.safetensors -o part.safetensors
table part.safetensors d.safetensors
table c.safetensors part.safetensors
# Other names.
printf '%s\n' 'rules:' '- rename: encoder\.(.*)' '  to: first.\1' '  apply: candidate' \
    '- rename: first\.(.*)' '  to: encoder.\1' '  apply: candidate' >rules.yaml
table --map rules.yaml c.safetensors d.safetensors
# Several candidates by depth.
gradcmp --dtype bf16 --html depth.html c.safetensors d.safetensors part.safetensors >/dev/null || true
grep -o '<th[^>]*>[^<]*layers[^<]*</th>' depth.html
