# Buckets hold no state of frozen weights: where sizes tell which these are, they are told as such.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/frozen.py"
try told data/megatron/dr_dp2 | sed -n '/^Notes/,$p'
cp -R told again
try again told | sed -n '/^Notes/,$p'
try open data/megatron/dr_dp2
