# Last rows that are a file of their own are a rank's part, not padding.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/padding_of_ranks.py"
try --dtype bf16 a b | sed -n '/^Causes/,$p'
