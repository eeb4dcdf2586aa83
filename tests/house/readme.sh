#!/bin/sh
# Check that the report shown in README.md is what the program prints, and that its table of formats
# has a row for each format that the program reads.
#   readme.sh PROGRAM SOURCE_ROOT [--bless]
set -eu
export LC_ALL=C.UTF-8 # the bars
program=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readme=$root/README.md

# The command stands in README.md as "    $ gradcmp BASELINE CANDIDATE"; its output follows,
# indented alike, up to the next line of text.
command=$(sed -n 's/^    \$ gradcmp //p' "$readme")
if [ -z "$command" ] || [ "$(echo "$command" | wc -l)" != 1 ]; then
    echo "README.md shows no report, or several"
    exit 1
fi
# shellcheck disable=SC2086  # two names
(cd "$root/tests/data/megatron" && "$program" $command) >"$work/out" || [ $? = 1 ]
{
    printf '    $ gradcmp %s\n\n' "$command"
    sed 's/^./    &/' "$work/out"
    echo
} >"$work/block"
awk -v block="$work/block" '
    /^    \$ gradcmp / {
        while ((getline line < block) > 0) {
            print line
        }
        inside = 1
    }
    inside && /^[^ ]/ { inside = 0 }
    !inside { print }' "$readme" >"$work/README.md"

for format in $("$program" --version | sed -n '/^formats:/,/^kernels:/p' | sed '/^kernels:/d; s/^formats://; s/,//g'); do
    if ! grep -q "^| \`$format\`" "$readme"; then
        echo "README.md: no row for $format in the table of formats"
        exit 1
    fi
done

if [ "${3-}" = --bless ]; then
    cp "$work/README.md" "$readme"
elif ! diff "$readme" "$work/README.md"; then
    echo "the report in README.md is not what the program prints (after a change that was meant:" \
        "tests/house/readme.sh PROGRAM SOURCE_ROOT --bless)"
    exit 1
fi
