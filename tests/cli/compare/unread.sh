# What is not read is counted in the last line where it is much.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/unread.py"
for kind in sparse complex array list small; do
    try --state param --dtype fp32 ${kind}_a.pt ${kind}_b.pt | sed -n '/^Notes/,$p'
    try check ${kind}_b.pt
done
try --state param --dtype fp32 --exclude embedding sparse_a.pt sparse_b.pt | tail -3
