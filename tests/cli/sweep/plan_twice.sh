# What a plan says twice of one checkpoint, and what it and the command line both say: nothing of it is
# dropped.
. "$TESTS_CLI/lib.sh"
mkdir runs 'runs[1]' runs1
for name in s_base tp2dp2 bug_double_layer1; do
    ln -s "$DATA/megatron/$name" runs
done
ln -s "$DATA/megatron/tp2dp2" runs1
ln -s "$DATA/megatron/bug_double_layer1" 'runs[1]'
short() {
    code=0
    gradcmp sweep "$@" >report 2>&1 || code=$?
    sed -n '/^gradcmp:/p; /^options/p; /^left out/,/^$/p; /SISTENT  /p; /^SWEEP/p' report
    printf '(exit %s)\n\n' "$code"
}
plan() {
    echo "- $1"
    printf "baseline: runs/s_base\ncandidates:\n$2" >plan.yaml
    shift 2
    short --plan plan.yaml "$@"
}
plan "a name that is another's path" \
    '- {path: runs/tp2dp2, name: runs/bug_double_layer1}\n- runs/bug*\n'
plan "which --baseline does not tell apart" \
    '- {path: runs/tp2dp2, name: runs/bug_double_layer1}\n- runs/bug*\n' --baseline runs/bug_double_layer1
plan "two expectations" \
    '- {path: runs/b*, expect: inconsistent}\n- {path: "runs/[b]*", expect: consistent}\n'
plan "two expectations, paths" \
    '- {path: runs/tp2dp2/, expect: inconsistent}\n- path: runs/tp2dp2\n  expect: consistent\n'
plan "the same twice" \
    '- {path: runs/b*, expect: inconsistent}\n- {path: runs/bug*, expect: inconsistent}\n'
plan "one of them, before the rest" \
    '- {path: runs/bug_double_layer1, name: doubled, expect: inconsistent}\n- runs/*\n'
plan "and behind it" \
    '- runs/*\n- {path: runs/bug_double_layer1, name: doubled, expect: inconsistent}\n'
plan "two names are two rows" \
    '- {path: runs/tp2dp2, name: one}\n- {path: runs/tp2dp2, name: two}\n- runs/tp*\n'
plan "the baseline is another" \
    '- {path: runs/bug*, expect: inconsistent}\n' --baseline runs/bug_double_layer1
echo "- a folder whose name looks like a pattern"
printf 'baseline: ../runs/s_base\ncandidates: [ "*" ]\n' >plan.yaml
short --plan plan.yaml 'runs[1]'
loose='- runs/bug*\nbounds: {k: 1000000, C: 2, max-bound: 100, dtype: fp8}\noptions: {strict: false, exclude: layers.1, match: fc1, vocab: 75, layers: 9, state: param}\n'
plan "a loose plan" "$loose"
plan "the command line" "$loose" --k 4 --C 1.03 --max-bound 0.25 --dtype bf16 --strict --exclude zzz \
    --match layers --vocab 70 --layers 4 --state exp_avg
plan "which iteration" '- runs/bug*\noptions: {iteration: 2}\n' --iteration 1
