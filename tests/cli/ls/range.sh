# The norm of float64 values whose squares leave the range of binary64.
. "$TESTS_CLI/lib.sh"
tiny='\131\363\370\302\037\156\245\001' # 1e-300
vast='\142\175\327\330\030\347\164\151' # about 1e200
one='\0\0\0\0\0\0\360\077'
write_safetensors far.safetensors '{"tiny": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]},
"vast": {"dtype": "F64", "shape": [2], "data_offsets": [16, 32]},
"zero": {"dtype": "F64", "shape": [2], "data_offsets": [32, 48]}}' \
    "$tiny$tiny$vast$one\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
gradcmp ls --stats far.safetensors | sed -n '/^Tensors/,$p'
gradcmp ls --stats --json - far.safetensors | grep -Eo '"(name|norm|max_abs)": [^,]*'
