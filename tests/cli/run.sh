#!/bin/sh
# Run the command-line cases of some areas and compare what they print and return.
#
#   run.sh [--bless] PROGRAM [AREA[/CASE]]...      all areas where none is named
#
# A case is AREA/CASE.sh; beside it lie CASE.stdout, CASE.exit and, where it writes to standard error,
# CASE.stderr. --bless writes these files from what the case does now: look at the difference before
# you commit it. run_case.sh says in what surroundings a case runs.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
bless=no
if [ "${1-}" = --bless ]; then
    bless=yes
    shift
fi
program=$1
shift
if [ $# -eq 0 ]; then
    for area in "$here"/*/; do
        area=${area%/}
        set -- "$@" "${area##*/}"
    done
fi

ran=0 failed=0
for what in "$@"; do
    what=${what%/}
    case $what in
    */*) pattern=${what%.sh}.sh ;;
    *) pattern="$what/*.sh" ;;
    esac
    for case in "$here"/$pattern; do
        [ -e "$case" ] || { echo "run.sh: no such case: $case" >&2 && exit 2; }
        ran=$((ran + 1))
        sh "$here/run_case.sh" "$program" "$case" "$bless" || failed=$((failed + 1))
    done
done
echo "$ran cases, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
