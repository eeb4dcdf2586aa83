# Ctrl-C between two waves of a sweep leaves the finished candidates in every report, and each report
# says that it is not the whole; the next sweep takes them over. Anywhere else a report is there whole
# or not at all.
. "$TESTS_CLI/lib.sh"
make_shim
mkdir runs
for name in s_base tp2dp2 fr_pp2dp2 dr_dp2 tp2_perlayer bug_double_layer1; do
    cp -R "data/megatron/$name" runs/$name
done
cp -R data/megatron/tp2dp2 runs/tp2dp2_again
REPORTS="--json r.json --html r.html --junit r.xml --markdown r.md"

echo "- when the first four are kept:"
code=0
# shellcheck disable=SC2086  # options
shimmed SHIM_SIGNAL=2 SHIM_RENAME=1 "$GRADCMP" sweep --resume state $REPORTS runs 2>&1 || code=$?
echo "(exit $code)"
grep '^ *"\(verdict\|unfinished\|label\)"' r.json
python3 "$TESTS_CLI/reports/markup.py" html r.html
python3 "$TESTS_CLI/reports/markup.py" junit r.xml | grep -o '^gradcmp.*\|verdict error interrupted\|2 not judged'
grep -o '^### .*\|2 not judged' r.md
ls -A
echo "- the next one:"
try sweep --resume state runs

# interrupted_anywhere ARGUMENT...: at the first look at the clock, the second, third, fifth, ...
interrupted_anywhere() {
    at=0 step=1 ended=no interrupts=0
    while [ $ended = no ]; do
        rm -f r.* state
        code=0
        # shellcheck disable=SC2086
        shimmed SHIM_SIGNAL=2 SHIM_LOOK=$at "$GRADCMP" "$@" -q --threads 1 $REPORTS 2>errors || code=$?
        case $code in
        130) interrupts=$((interrupts + 1)) ;;
        0 | 1) ended=yes ;;
        *) echo "exit $code"; cat errors ;;
        esac
        [ $code != 130 ] || grep -q '^gradcmp: interrupted' errors || { echo "at $at:"; cat errors; }
        python3 "$TESTS_CLI/sweep/whole.py" $code r.json r.html r.xml r.md
        find . -name '*.tmp'
        at=$((at + step)) step=$((step + at / 3))
    done
    echo "$1: $([ $interrupts -gt 2 ] && echo interrupted in several places), at last exit $code"
}
echo "- anywhere:"
interrupted_anywhere sweep runs
interrupted_anywhere sweep --resume state runs
interrupted_anywhere compare runs/s_base runs/tp2dp2 runs/bug_double_layer1
