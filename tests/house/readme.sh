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

# Its pictures are there, small, and the one of the terminal is of this program. Without Python they
# cannot be made again, and are not looked at.
sed -n 's/^!\[.*](\(.*\))$/\1/p' "$readme" >"$work/pictures"
[ -s "$work/pictures" ] || { echo "README.md shows no picture"; exit 1; }
bytes=0
while read -r picture; do
    [ -s "$root/$picture" ] || { echo "README.md shows $picture, which is not there"; exit 1; }
    bytes=$((bytes + $(wc -c <"$root/$picture")))
done <"$work/pictures"
[ $bytes -le 300000 ] || { echo "the pictures of README.md have $bytes bytes, at most 300000"; exit 1; }
if [ "${3-}" != --bless ] && command -v python3 >/dev/null; then
    python3 -B "$root/examples/pictures/make.py" "$program" --check || exit 1
fi

if [ "${3-}" = --bless ]; then
    cp "$work/README.md" "$readme"
elif ! diff "$readme" "$work/README.md"; then
    echo "the report in README.md is not what the program prints (after a change that was meant:" \
        "tests/house/readme.sh PROGRAM SOURCE_ROOT --bless)"
    exit 1
fi
