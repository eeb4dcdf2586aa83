#!/bin/sh
# Check the names that the libraries give to a linker: only gradcmp_ from the shared one, and in
# the static one nothing without our prefixes, which could clash with a name of the user's program.
#   symbols.sh SHARED_LIBRARY STATIC_LIBRARY INCLUDE_FOLDER
set -eu
shared=$1 static=$2 include=$3
failed=0

complain() { # TEXT NAMES
    if [ -n "$2" ]; then
        echo "$1:"
        echo "$2" | sed 's/^/    /'
        failed=1
    fi
}

names() { # the name is the last word of a line of a defined symbol
    awk 'NF >= 3 { print $NF }' | sort -u
}

exported=$(nm -D --defined-only "$shared" | names)
complain "exported from $shared without the prefix gradcmp_" \
    "$(echo "$exported" | grep -v '^gradcmp_[a-z0-9_]*$' || true)"

# What the public headers promise is there, and nothing else is.
promised=$(cat "$include"/gradcmp/*.h | tr '\n' ' ' | grep -o 'GRADCMP_API [^;]*;' |
    grep -o 'gradcmp_[a-z0-9_]* *(' | tr -d ' (' | sort -u)
[ -n "$promised" ] || complain "no function found below" "$include"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
echo "$promised" >"$list"
complain "exported, but not in a header of $include/gradcmp" "$(echo "$exported" | grep -v -x -F -f "$list" || true)"
echo "$exported" >"$list"
complain "in a header, but not exported" "$(echo "$promised" | grep -v -x -F -f "$list" || true)"

complain "global in $static without the prefix gradcmp_ or gcmp_" \
    "$(nm -g --defined-only "$static" | names | grep -v -E '^(gradcmp|gcmp)_' || true)"
exit $failed
