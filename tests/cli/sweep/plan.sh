# A plan says what is compared and how it is to come out; what is wrong in it is told with its line.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron runs
cat >plan.yaml <<'PLAN'
baseline: runs/s_base
candidates:
  - runs/tp2d*
  - path: runs/bug_double_layer1
    name: doubled
    expect: inconsistent
  - {path: runs/missing, expect: error}
bounds: {k: 4, C: 1.03}
options:
  exclude: output_layer
PLAN
try sweep --plan plan.yaml
sed 's/expect: inconsistent/expect: consistent/' plan.yaml >other.yaml
try sweep --plan other.yaml
# A bound that the command line asks for as a whole stands in place of the plan's.
gradcmp fit -q -o noise.yaml runs/s_base runs/tp2dp2 runs/dr_dp2
printf 'baseline: runs/s_base\ncandidates: [runs/bug_double_layer1]\nbounds: {k: 16, C: 1.5, max-bound: 0.9}\n' >wide.yaml
for bound in '--compat megatron' '--fit noise.yaml' '--k 4'; do
    # shellcheck disable=SC2086  # two words
    gradcmp sweep --plan wide.yaml $bound --json - >wide.json || true
    grep '^  "options"' wide.json
    grep '"bound": {' wide.json
done
wrong() {
    printf "$@" >wrong.yaml
    try sweep --plan wrong.yaml
}
wrong 'baseline: runs/s_base\ncandidate: [runs/tp2dp2]\n'
wrong 'baseline: [runs/s_base]\ncandidates: [runs/tp2dp2]\n'
wrong 'baseline: runs/s_base\nbaseline: runs/s_base\ncandidates: [runs/tp2dp2]\n'
wrong 'candidates:\n  - path: runs/tp2dp2\n    expect: good\n'
wrong 'candidates: []\n'
wrong 'candidates: [runs/none*]\n'
wrong 'candidates: [runs/tp2dp2]\nbounds: {k: -1}\n'
wrong 'candidates: [runs/tp2dp2]\noptions: {vocab: many}\n'
wrong 'candidates: [runs/tp2dp2]\noptions: {strict: 3}\n'
wrong 'candidates: [runs/tp2dp2\n'
try sweep
try sweep a b
try sweep --plan missing.yaml
# What nobody sweeps at once is refused.
awk 'BEGIN { print "candidates:"; for (i = 0; i < 65537; i++) print "- c" i }' >wrong.yaml
try sweep --plan wrong.yaml
