# The mark of UTF-8 before the first record is none of it, in lines and in documents.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
file=rank00000_iter000001.jsonl
marked() { # FILE OF
    mkdir -p "${1%/*}"
    { printf '\357\273\277'; cat "$2"; } >"$1"
}
ops a 0 3 4 5
ops b 0 6 4 5
marked c/$file a/$file
marked d/$file b/$file
try trace a c
try trace --quiet c a
try trace --quiet a d
try trace --quiet c d
marked twice/$file c/$file
printf '\357\273\277' >mark
marked empty/$file /dev/null
try trace --quiet a twice
try trace --quiet a empty

dump e/step0/rank0 1.0
dump g/step0/rank0 2.0
marked f/step0/rank0/dump.json e/step0/rank0/dump.json
try trace --quiet e f
try trace --quiet g f
