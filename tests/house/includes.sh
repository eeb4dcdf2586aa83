#!/bin/sh
# Check who includes whom: the layers of the source, as each folder's README states them.
#   includes.sh SOURCE_ROOT
set -eu
cd "$1"
failed=0

# allow FOLDER PREFIX...: sources directly in FOLDER may quote only headers under these prefixes.
allow() {
    folder=$1
    shift
    for file in "$folder"/*.c "$folder"/*.h "$folder"/*.cu; do
        [ -e "$file" ] || continue
        checked=$((checked + 1))
        sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file" |
            while read -r header; do
                permitted=no
                for prefix in "$@"; do
                    case $header in
                    *..*) ;;
                    "$prefix"*) permitted=yes ;;
                    esac
                done
                [ $permitted = yes ] || echo "$file: may not include \"$header\""
            done
        # Our own headers are quoted, or the rule above would not see them.
        sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$file" |
            while read -r header; do
                case $header in
                gradcmp/* | base/* | kernels/* | engine/* | report/* | formats/* | unshard/* | \
                    bounds/* | gpu/* | cli/*) echo "$file: quote \"$header\"" ;;
                esac
            done
    done
}

checked=0
found=$(
    allow include/gradcmp gradcmp/
    allow include/gradcmp/sys gradcmp/
    allow src/base base/ gradcmp/
    allow src/kernels kernels/ base/ gradcmp/
    allow src/engine engine/ kernels/ base/ gradcmp/
    allow src/report report/ base/ gradcmp/
    allow formats formats/ base/ gradcmp/
    allow unshard unshard/ base/ gradcmp/
    allow bounds bounds/ base/ gradcmp/
    allow gpu gpu/ base/ gradcmp/ kernels/lane
    # The program is a user of the library like any other.
    allow src/cli cli/ gradcmp/gradcmp.h
    [ "$checked" -gt 20 ] || echo "only $checked files found: is this the source root?"
)
if [ -n "$found" ]; then
    echo "$found"
    failed=1
fi
exit $failed
