# Looking for the baseline opens every checkpoint, those too whose numbers only another one can name.
. "$TESTS_CLI/lib.sh"
try sweep data/dcp/numbers | tail -n 3
