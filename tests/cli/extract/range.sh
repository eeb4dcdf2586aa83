# float64 values that float32 has no room for: finite ones do not become infinite, and those that
# become zero are told.
. "$TESTS_CLI/lib.sh"
tiny='\131\363\370\302\037\156\245\001' # 1e-300
vast='\142\175\327\330\030\347\164\151' # about 1e200
one='\0\0\0\0\0\0\360\077'
endless='\0\0\0\0\0\0\360\177' # already infinite
shape='"shape": [2], "data_offsets": [0, 16]'
write_safetensors vast.safetensors "{\"w\": {\"dtype\": \"F64\", $shape}}" "$vast$one"
write_safetensors tiny.safetensors "{\"w\": {\"dtype\": \"F64\", $shape}}" "$tiny$one"
write_safetensors endless.safetensors "{\"w\": {\"dtype\": \"F64\", $shape}}" "$endless$one"
for name in vast tiny endless; do
    for ending in safetensors h5; do
        try extract --as float32 $name.safetensors -o out_$name.$ending
    done
done
try extract vast.safetensors -o whole.safetensors
ls out_vast* 2>/dev/null || echo nothing was written
gradcmp ls --stats out_tiny.safetensors | tail -n 1
