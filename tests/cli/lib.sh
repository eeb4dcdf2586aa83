# Sourced by cases: . "$TESTS_CLI/lib.sh"

# Run the program with both streams on standard output, framed by the command and the exit code.
try() {
    printf '$ gradcmp'
    printf ' %s' "$@"
    printf '\n'
    code=0
    gradcmp "$@" 2>&1 || code=$?
    printf '(exit %s)\n\n' "$code"
}

# Copy a checkpoint of tests/data/megatron into the folder, to be spoilt: copy_checkpoint NAME AS
copy_checkpoint() {
    cp -R "data/megatron/$1" "$2"
    chmod -R u+w "$2"
}

# Make shim.so in the folder, and run a command under it: shimmed VARIABLE=VALUE COMMAND...
make_shim() {
    ${CC:-cc} -shared -fPIC -o shim.so "$TESTS_CLI/shim.c"
}
shimmed() {
    # Sanitizers want to be first; here they need not be.
    env LD_PRELOAD="$PWD/shim.so" ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" "$@"
}

# Write a safetensors file of a header under 256 bytes, and data as printf takes it:
# write_safetensors FILE HEADER DATA
write_safetensors() {
    # shellcheck disable=SC2059  # octal digits
    { printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0" && printf '%s' "$2" && printf "$3"; } >"$1"
}
