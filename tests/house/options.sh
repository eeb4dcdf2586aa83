#!/bin/sh
# Check that what --help promises is tested: every option of every command stands in a case of the
# command line (or a test of Python) that runs that command; where a command shares an option with
# others and does the same with it, in a case of one of them.
#   options.sh PROGRAM SOURCE_ROOT
set -eu
program=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# All lines that run something, those that go on joined, comments left out.
find "$root/tests/cli" "$root/tests/mpi" "$root/tests/contain" "$root/tests/house" \
    \( -name '*.sh' -o -name '*.py' \) ! -name options.sh ! -name every_option.sh -exec cat {} + |
    sed -e :more -e '/\\$/{N;s/\\\n/ /;b more' -e '}' | sed '/^ *#/d' >"$work/lines"

commands=$("$program" --generate bash | sed -n 's/^        \([a-z]*\)) options=.*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 5 ] || { echo "too few commands: $commands"; exit 1; }
for command in $commands; do
    "$program" "$command" --help-all | grep -E '^  (   |-[a-zA-Z],) --' | sed 's/^  //; s/[=[].*//' |
        while read -r first second _; do
            case $first in
            -?,) echo "$second ${first%,}" ;;
            *) echo "$first $first" ;;
            esac
        done >"$work/$command"
    [ -s "$work/$command" ] || { echo "$command --help-all lists nothing"; failed=1; }
done
cat "$work"/[a-z]* >/dev/null
for command in $commands; do
    while read -r long short; do
        grep -q -E -e "(^|[^a-z-])($long|$short)([^a-zA-Z0-9-]|\$)" "$work/lines" ||
            { echo "$command $long: in no test"; failed=1; }
    done <"$work/$command"
done
exit $failed
