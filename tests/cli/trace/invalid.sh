# What is damaged or of another kind is told in one line, exit 2, and never passes.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
ops a 0 3 4 5
boundaries full 0 b c
file=rank00000_iter000001.jsonl
spoil() { # NAME SED-EXPRESSION
    mkdir "$1"
    sed "$2" a/$file >"$1/$file"
}

spoil schema 's/"schema_version":1/"schema_version":2/'
spoil rank 's/"rank":0/"rank":1/'
spoil twice 's/"seq":1,/"seq":1,"seq":1,/'
spoil gap '2d'
spoil again '3s/"id":"[^"]*"/"id":"combine:1"/; 3s/"name":"[^"]*"/"name":"combine"/'
spoil digest '4s/4444444444444444/444444444444444G/'
spoil huge '1s/"numel":2/"numel":99999999999999999999999/'
spoil real '1s/"numel":2/"numel":1e999/'
spoil skipped '2s/"digest":"2*"/"digest":"skipped_oversize"/'
mkdir cut empty nothing bytes deep name list
head -c 700 a/$file >cut/$file
: >empty/$file
printf 'binary\000\377\n' >bytes/$file
{ head -n 1 a/$file; printf '{"a":"\377"}\n'; } >>bytes/$file
{ head -n 1 a/$file; digits '[' 100; } >deep/$file
cp a/$file name/rank0.jsonl
printf '[1]\n' >list/$file
for bad in schema rank twice gap again digest huge real skipped cut empty nothing bytes deep name list; do
    try trace --quiet a $bad
done
try trace a cut
try trace --lenient a cut
try trace a full
try trace a absent
try trace a
