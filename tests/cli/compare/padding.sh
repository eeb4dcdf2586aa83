# Where no file tells the size of the vocabulary, its padding is compared too: what differs is named,
# and how to leave it out. Words that differ before it, whole parts of ranks and weights whose rows are
# no words are never taken for padding.
. "$TESTS_CLI/lib.sh"
rows=320 columns=4
values() { # SEED FIRST LAST: the bytes of float32 values, the same for the same seed and row
    awk -v seed="$1" -v first="$2" -v last="$3" -v columns=$columns 'BEGIN {
        for (i = first * columns; i < last * columns; i++) {
            x = (i * 7919 + seed * 104729 + 1) % 65521
            x = (x * x + 12345) % 65521
            printf "\\%03o\\%03o\\%03o\\%03o", x % 256, int(x / 256) % 256, int(x / 3) % 256, 58 + x % 2 * 128
        }
    }'
}
write() { # FILE NAME FROM TO SEED: rows FROM to TO hold other values than those of seed 1
    end=$((rows * columns * 4))
    header="{\"exp_avg.$2\":{\"dtype\":\"F32\",\"shape\":[$rows,$columns],\"data_offsets\":[0,$end]}}"
    { printf '\000\001\000\000\000\000\000\000%-256s' "$header"
      printf "$(values 1 0 "$3")$(values "$5" "$3" "$4")$(values 1 "$4" $rows)"; } >"$1"
}
for name in embed_tokens.weight lm_head.weight layers.0.mlp.down_proj.weight; do
    write a.safetensors $name 0 0 1
    for from in 319 300 193 192; do
        write b.safetensors $name $from $rows 2
        printf '%s from row %s: ' $name $from
        gradcmp --dtype bf16 a.safetensors b.safetensors | tail -n 1 || :
    done
done
write a.safetensors lm_head.weight 0 0 1
write b.safetensors lm_head.weight 300 319 2
printf 'not the last row: '
gradcmp --dtype bf16 a.safetensors b.safetensors | tail -n 1 || :
write b.safetensors lm_head.weight 300 $rows 2
try --dtype bf16 --vocab 300 -q a.safetensors b.safetensors
gradcmp --dtype bf16 --vocab 301 a.safetensors b.safetensors | tail -n 1 || :
gradcmp --dtype bf16 a.safetensors b.safetensors | sed -n '/^Causes/,/^$/p'
