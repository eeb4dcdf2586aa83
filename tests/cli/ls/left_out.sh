# Tensors of other than real numbers are no model's weights here: that they are left out is told, in
# the list, beside its JSON, and where weights are extracted.
. "$TESTS_CLI/lib.sh"
write_safetensors mixed.safetensors '{"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
"n.ids": {"dtype": "I64", "shape": [2], "data_offsets": [8, 24]},
"c.weight": {"dtype": "C64", "shape": [2], "data_offsets": [24, 40]}}' "$(printf '\\0%.0s' $(seq 40))"
gradcmp ls mixed.safetensors | sed -n '/^Tensors/,$p'
gradcmp ls --exclude 'n.*' mixed.safetensors | sed -n '/^Notes/,$p'
gradcmp ls --json - mixed.safetensors 2>&1 >list.json
try extract mixed.safetensors -o weights.safetensors
try extract --exclude '[cn]\..*' mixed.safetensors -o plain.safetensors
# A single number is a counter.
write_safetensors counter.safetensors '{"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
"b.num_batches_tracked": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}}' "$(printf '\\0%.0s' $(seq 16))"
gradcmp ls counter.safetensors | sed -n '/^Tensors/,$p'
# So is the state of a generator, and no weight.
write_safetensors rng.safetensors '{"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
"torch_rng_state": {"dtype": "U8", "shape": [8], "data_offsets": [8, 16]}}' "$(printf '\\0%.0s' $(seq 16))"
gradcmp ls rng.safetensors | sed -n '/^Notes/,$p'
