# Sides so far apart that the squares of both fit into no one range: the figures of each are its own.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/far_apart.py"
for pair in 'a b' 'b a'; do
    # shellcheck disable=SC2086
    set -- $pair
    gradcmp --dtype fp64 --json - --quiet $1.safetensors $2.safetensors |
        grep -oE '"(name|verdict|rel|alpha|rho|cos|norm_[ab]|max_abs|kind)": [^,}]*' | grep -v '"kind"' | sort | uniq -c
    try --dtype fp64 $1.safetensors $2.safetensors | grep -E '^(global|- )|zero|too far|^INCON'
done
