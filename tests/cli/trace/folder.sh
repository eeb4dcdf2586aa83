# Several traces of one pair of runs: strong evidence takes back what digests blind to permutations
# blame.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
ops a/ops 0 3 4 5
boundaries a/boundary 0 b c
ops b/ops 0 6 7 8
boundaries b/boundary 0 d e
try trace a/ops b/ops
try trace a b
try trace --json - a b
try trace a/ops b/boundary
rm -r b/boundary
try trace a b
try trace --lenient a b
cp -al a linked
for other in a linked; do # two names of one proves nothing
    try trace a $other
done
