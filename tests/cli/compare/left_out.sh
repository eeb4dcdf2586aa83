. "$TESTS_CLI/lib.sh"

# A safetensors file: safetensors FILE HEADER BYTES
safetensors() {
    # shellcheck disable=SC2059  # octal digits of the length; bytes
    { printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0"; printf '%s' "$2"; printf "$3"; } >"$1"
}
# Weights that are no real numbers are not judged, and a verdict that leaves them out says so.
header='{"a.ids":{"dtype":"I32","shape":[2],"data_offsets":[8,16]},'
header=$header'"a.w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
safetensors a.safetensors "$header" 'aaaabbbbaaaabbbb'
safetensors b.safetensors "$header" 'aaaabbbbaaaacccc'
gradcmp --state param a.safetensors b.safetensors | sed -n '/^Notes/,$p'
gradcmp --state param --exclude ids a.safetensors b.safetensors | sed -n '/^Notes/,$p'
try bits --quiet a.safetensors b.safetensors
