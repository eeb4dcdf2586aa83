# An output layer that one side alone stores is taken for tied where it is the embedding to the last
# bit; else the other side lacks it, even where the values are close.
. "$TESTS_CLI/lib.sh"
write() { # FILE OUTPUT: four numbers of an embedding, and those of an output layer unless ""
    tensor='"dtype":"F32","shape":[2,2],"data_offsets"'
    header="{\"exp_avg.embed_tokens.weight\":{$tensor:[0,16]}"
    [ -z "$2" ] || header="$header,\"exp_avg.lm_head.weight\":{$tensor:[16,32]}"
    numbers='\000\000\200\077\000\000\200\076\000\000\000\100\000\000\200\077'
    { printf '\000\001\000\000\000\000\000\000%-256s' "$header}"; printf "$numbers$2"; } >"$1"
}
same='\000\000\200\077\000\000\200\076\000\000\000\100\000\000\200\077'
near='\001\000\200\077\000\000\200\076\000\000\000\100\000\000\200\077'
write without.safetensors ''
write tied.safetensors "$same"
write near.safetensors "$near"
try -q --dtype bf16 without.safetensors tied.safetensors
try --dtype bf16 without.safetensors near.safetensors
try -q --dtype bf16 near.safetensors without.safetensors
try -q --dtype bf16 --exclude embed near.safetensors without.safetensors
