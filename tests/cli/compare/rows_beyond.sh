# Rows that one candidate lacks are looked at, whatever other candidates have.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/rows_beyond.py"
for others in 'b' 'b c' 'c b'; do
    set -- a.safetensors
    for other in $others; do
        set -- "$@" "$other.safetensors"
    done
    try "$@" | grep -E ' rows beyond | another shape|^\(exit'
done
