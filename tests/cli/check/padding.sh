# Padding rows of the vocabulary: NaN and Inf are findings, in states other values a note. (A
# file of extract tells the vocabulary.)
. "$TESTS_CLI/lib.sh"
write() { # FILE PREFIX BYTES: 4 rows of 2, of which the last two hold these bytes, 16 in all
    run='"gradcmp.version":"1","gradcmp.vocab":"2"'
    header="{\"__metadata__\":{$run},\"$2embed_tokens.weight\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}}"
    { printf '\000\001\000\000\000\000\000\000%-256s' "$header"
      printf '\000\000\200\077%.0s' 1 2 3 4
      printf "$3"; } >"$1"
}
zero='\000\000\000\000' one='\000\000\200\077' nan='\000\000\300\177'
for prefix in optimizer.state.exp_avg. ''; do
    write a.safetensors "$prefix" "$zero$zero$zero$zero"
    try check a.safetensors
    write a.safetensors "$prefix" "$zero$one$one$one"
    try check a.safetensors
    write a.safetensors "$prefix" "$nan$zero$nan$one"
    try check a.safetensors
    write a.safetensors "$prefix" "$nan$nan$nan$nan"
    try check a.safetensors
done
