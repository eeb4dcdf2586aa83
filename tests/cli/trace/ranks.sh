# Who is to blame: all ranks, one of them and the other through a collective, nobody.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
ops a 0 3 4 5
ops a 1 3 4 5

cp -R a same
try trace a same

ops all 0 6 7 8
ops all 1 6 7 8
try trace a all

ops one 0 3 4 8
ops one 1 6 7 8
try trace a one

# Only the sum differs, whatever went in: the reduction itself.
ops sum 0 3 4 8
ops sum 1 3 4 8
try trace a sum

# One rank alone has less to say.
mkdir alone
cp a/rank00000_iter000001.jsonl alone
try trace a alone
try trace --quiet a one
