# --resume FILE: what was judged and has not changed is taken over with all figures; a change of files
# or options, an unreadable checkpoint and a new one are judged anew.
. "$TESTS_CLI/lib.sh"
mkdir runs
for name in s_base tp2dp2 fr_pp2dp2 bug_double_layer1; do
    copy_checkpoint $name runs/$name
done
# How a sweep came out in short: what was read, what was taken over, rows.
short() {
    code=0
    gradcmp sweep --resume state "$@" runs 2>&1 >report || code=$?
    sed -n '/^read/p; /^taken over/p; /SISTENT/p; /^SWEEP/p' report
    printf '(exit %s)\n\n' "$code"
}
try sweep --resume state runs
gradcmp sweep --json fresh.json runs >/dev/null || true
try sweep --resume state --json again.json runs
# But for the marks, the figures are those of a sweep that judges all.
strip() {
    sed '/"taken_over"/d; /taken over from/d; /"baseline_bytes"/d; /"candidate_bytes"/d; /"baseline_readings"/d
        s/"notes": \[.*/"notes"/; /^ *\],*$/d' "$1"
}
strip fresh.json >a
strip again.json >b
cmp a b && grep -c '"taken_over": true' again.json
# The other reports say it too.
gradcmp sweep --resume state --markdown - --html report.html --junit report.xml runs | grep 'taken over' || true
grep -c 'taken over from' report.html
grep -c 'taken over' report.xml
echo "- an option:"
short --k 3
echo "- what only says how to print or to read:"
short --k 3 --top 1 --threads 1 --color never
echo "- files: bytes, times, one more, one less"
touch runs/tp2dp2/iter_0000001/common.pt
short --k 3
echo text >runs/fr_pp2dp2/iter_0000001/more
short --k 3
echo "- the baseline:"
touch runs/s_base/iter_0000001/.metadata
short --k 3
echo "- a new one, and one that cannot be read, which is looked at each time:"
copy_checkpoint dr_dp2 runs/dr_dp2
copy_checkpoint tp2_perlayer runs/broken
rm runs/broken/iter_0000001/.metadata
short --k 3
short --k 3
rm -r runs/broken
echo "- waves: five candidates are two readings of the baseline"
copy_checkpoint tp2_perlayer runs/tp2_perlayer
rm state
short
rm -r runs/tp2dp2
short
# A file of rules or of noise counts with what is in it.
printf 'rules:\n  - rename: decoder\\.(.*)\n    to: d.\\1\n' >map.yaml
short --map map.yaml
short --map map.yaml
echo '# changed' >>map.yaml
short --map map.yaml
