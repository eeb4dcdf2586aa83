# An embedding and its tied output layer whose gradients were not added up: the candidate stores both,
# and their sum is the baseline. Two that add up to something else are not explained.
. "$TESTS_CLI/lib.sh"
entry() { # NAME FIRST: 8 rows of 4
    printf '"exp_avg.%s":{"dtype":"F32","shape":[8,4],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 128))
}
fill() { # one of two values in turn, 32 in all
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        printf "$1$2"
    done
}
write() { # FILE HEADER
    { printf '\000\002\000\000\000\000\000\000%-512s' "{$2}"
      cat; } >"$1"
}
zero='\000\000\000\000' one='\000\000\200\077' two='\000\000\000\100'
embedding=embed_tokens.weight norm=layers.0.mlp.down_proj.weight output=lm_head.weight
{ fill $one $two; fill $two $one; } |
    write a.safetensors "$(entry $embedding 0),$(entry $norm 128)"
judge() { # of the candidate's embedding, and its output layer
    { fill $1 $2; fill $two $one; fill $3 $4; } |
        write b.safetensors "$(entry $embedding 0),$(entry $norm 128),$(entry $output 256)"
    gradcmp --dtype bf16 a.safetensors b.safetensors | sed -n '/^Failing/,$p'
}
echo "== each has a part"
judge $one $zero $zero $two
echo "== the other way round"
judge $zero $two $one $zero
echo "== another sum"
judge $one $zero $two $two
