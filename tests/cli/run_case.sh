#!/bin/sh
# Run one case of the command line. run.sh calls this.
#
#   run_case.sh PROGRAM CASE.sh yes|no             the last: whether to rewrite what is expected
#
# The case runs in an empty folder that is removed afterwards, with
#   gradcmp         the program, first in PATH
#   data            a link to tests/data, so that no path depends on where the checkout lies
#   GRADCMP, DATA   the same two as absolute paths
#   TESTS_CLI       this folder
#   PYTHONPATH      tests, which hold safetensors_file.py and the like
# in the C locale, without a terminal and without variables that change colours.
set -eu
program=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
case=$(CDPATH='' cd -- "$(dirname -- "$2")" && pwd)/$(basename -- "$2")
expected=${case%.sh}
bless=$3

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder" && rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$folder/work" "$folder/bin"
ln -s "$program" "$folder/bin/gradcmp"
ln -s "$here/../data" "$folder/work/data"

unset NO_COLOR CLICOLOR_FORCE COLUMNS GRADCMP_DISABLE_CPU
export GRADCMP="$program" DATA="$here/../data" TESTS_CLI="$here" PYTHONPATH="$here/.." PATH="$folder/bin:$PATH"
export LC_ALL=C TERM=dumb PYTHONDONTWRITEBYTECODE=1
code=0
(cd "$folder/work" && sh -eu "$case") \
    </dev/null >"$folder/stdout" 2>"$folder/stderr" || code=$?
echo "$code" >"$folder/exit"

if [ "$bless" = yes ]; then
    cp "$folder/stdout" "$expected.stdout"
    cp "$folder/exit" "$expected.exit"
    rm -f "$expected.stderr"
    [ ! -s "$folder/stderr" ] || cp "$folder/stderr" "$expected.stderr"
    exit 0
fi
status=0
for kind in exit stdout stderr; do
    want=$expected.$kind
    [ -e "$want" ] || [ $kind != stderr ] || want=/dev/null
    if ! diff -u "$want" "$folder/$kind" >"$folder/difference" 2>&1; then
        echo "FAILED ${expected#"$here/"}: $kind"
        cat "$folder/difference"
        status=1
    fi
done
exit $status
