#!/bin/sh
# Check what may lie where: the top level, the size of the test data, the length of a source file.
#   layout.sh SOURCE_ROOT
set -eu
cd "$1"
top_level="CMakeLists.txt CMakePresets.json README.md include src formats unshard bounds gpu tests examples"
most_data_bytes=$((13 << 20))
most_lines=800 # the style says about 600; this is no longer about
failed=0

complain() {
    echo "$*"
    failed=1
}

# What git does not track (build folders, an editor's files) is nobody's business.
if git rev-parse --git-dir >/dev/null 2>&1; then
    for name in $(git ls-files | sed 's,/.*,,' | sort -u); do
        case " $top_level " in
        *" $name "*) ;;
        *) case $name in .*) ;; *) complain "$name: does not belong to the top level" ;; esac ;;
        esac
    done
fi

bytes=$(find tests/data -type f -exec cat {} + | wc -c)
[ "$bytes" -le $most_data_bytes ] || complain "tests/data holds $bytes bytes, at most $most_data_bytes"

for folder in include src formats unshard bounds gpu tests examples; do
    [ -d $folder ] || continue
    for file in $(find $folder \( -name '*.[ch]' -o -name '*.cu' \) -size +20k | sort); do
        lines=$(wc -l <"$file")
        [ "$lines" -le $most_lines ] || complain "$file: $lines lines, at most $most_lines"
    done
done
exit $failed
