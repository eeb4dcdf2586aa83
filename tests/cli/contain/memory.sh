# --memory-limit: what does not fit is one line, exit 2; what fits gives the same answer.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
# A sanitizer's own memory is beyond any limit.
if ASAN_OPTIONS=help=1 TSAN_OPTIONS=help=1 MSAN_OPTIONS=help=1 gradcmp --version 2>&1 | grep -q Sanitizer; then
    cat "$TESTS_CLI/contain/memory.stdout"
    exit 0
fi
# A header of 60,000 tensors takes some 50 MiB when it is parsed.
awk 'BEGIN {
    printf "{"
    for (i = 0; i < 60000; i++)
        printf "%s\"layers.%d.w%d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
            i ? "," : "", i % 8, i, 4 * i, 4 * i + 4
    printf "}"
}' >header
length=$(wc -c <header)
{
    for shift in 1 256 65536 16777216; do
        printf "\\$(printf %03o $((length / shift % 256)))"
    done
    printf '\0\0\0\0'
    cat header
    head -c 240000 /dev/zero
} >large.safetensors
try ls --memory-limit 16MiB large.safetensors
try --memory-limit 16MiB --json r.json s_base large.safetensors
try check --memory-limit 16MiB large.safetensors
try bits --memory-limit 16MiB large.safetensors large.safetensors
try extract --memory-limit 16MiB large.safetensors -o x.safetensors
ls -A | grep -e '^x' -e tmp || true
gradcmp ls --memory-limit 512MiB large.safetensors | tail -n 1
gradcmp --threads 8 s_base tp2dp2 >plain.txt
gradcmp --threads 8 --memory-limit 32MiB s_base tp2dp2 | cmp - plain.txt
gradcmp ls --memory-limit 32MiB data/hdf5/bf16_custom.h5 | tail -n 1
try --memory-limit 1MiB s_base tp2dp2
try --memory-limit much s_base tp2dp2
