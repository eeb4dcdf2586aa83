#!/bin/sh
# Check that what the terminal shows fits 80 columns, as the cases of the command line have it.
#   columns.sh SOURCE_ROOT
#
# Longer may be: the verdict, which is one line for a log or a chat; messages and commands; names,
# paths and digests, which nobody could copy if they were cut; and what is meant for machines.
set -eu
cd "$1/tests/cli"
export LC_ALL=C
for file in bits/*.stdout check/*.stdout compare/*.stdout extract/*.stdout fit/*.stdout lint/*.stdout \
    map/*.stdout metrics/*.stdout sweep/*.stdout trace/*.stdout; do
    sed "s/\xc2\xb7/-/g; s/\xe2[\x80-\xbf][\x80-\xbf]/#/g" "$file" | awk -v file="$file" '
        length <= 80 { next }
        /^(\$ )?gradcmp/ { next }                                          # messages, commands
        /^[^a-z]*[A-Z][A-Z ]+: / || /: (IN)?CONSISTENT: / { next }         # verdicts
        /^(differs|identical)/ { next }                                    # those of bits
        /^# / || /^ *["{}\[\]]/ { next }                                   # YAML, JSON
        {
            for (i = 1; i <= NF; i++) {
                if (length($i) > 30) { next }                              # a name, a path, a digest
            }
            print file ": over 80 columns: " $0
        }'
done >"${TMPDIR:-/tmp}/columns.$$"
status=0
if [ -s "${TMPDIR:-/tmp}/columns.$$" ]; then
    cat "${TMPDIR:-/tmp}/columns.$$"
    status=1
fi
rm -f "${TMPDIR:-/tmp}/columns.$$"
exit $status
