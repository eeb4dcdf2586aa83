# A tied weight has one state, under the name that its module was registered with first: where a file
# shows that both sides' names are one weight's, it is compared; two weights of one shape are not.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/tied_weight.py"
for pair in 'first.pt last.pt' 'last.pt first.pt' 'first.pt off.pt' 'apart.pt last.pt' 'first.pt head.pt' \
    'apart.pt head.pt'; do
    # shellcheck disable=SC2086
    try --dtype fp32 $pair | sed -n '/^compared/p; /^Notes/,/^$/p; /^[A-Z]*: /p'
done
try --dtype fp32 first.pt last.pt off.pt | tail -n 8
