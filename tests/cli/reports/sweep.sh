# What a sweep finds beside its comparisons is in every report: runs that did not do what their
# configuration says, repeats that differ, what a plan expects. No report is better than the exit status.
. "$TESTS_CLI/lib.sh"
REPORTS="--json r.json --html r.html --junit r.xml --markdown r.md --annotations github"
swept() {
    # shellcheck disable=SC2086  # options
    try sweep -q $REPORTS "$@"
    sed -n 's/^  "verdict"/JSON: "verdict"/p' r.json
    python3 "$TESTS_CLI/reports/markup.py" html r.html | grep '^title\|^matrix\|^command'
    sed 's/<[^>]*>//g' r.html | grep 'as planned\|configuration$\|^Runs that\|^Repeats\|^repeat_\|^identical\|^differs\|^of ' || true
    python3 "$TESTS_CLI/reports/markup.py" junit r.xml | grep 'verdict\|configuration\|bit for bit\|^[^ ]'
    sed '/<details>/,/<.details>/d; /again:/d' r.md
}
put() {
    mkdir -p "out/$2"
    cp -R "data/megatron/$1/." "out/$2/"
    chmod -R u+w "out/$2"
}
put s_base repeat_1_key_MODEL_ARGS
put tp2dp2 repeat_2_key_MODEL_ARGS
put tp2dp2 repeat_1_key_MODEL_ARGS_2
cat >model_config.yaml <<'RECIPE'
MODEL_ARGS:
  --tensor-model-parallel-size: 1
MODEL_ARGS_2:
  --tensor-model-parallel-size: 4
RECIPE
echo "- all pairs are consistent, and the sweep fails:"
swept --plan model_config.yaml out
ln -s data/megatron runs
cat >plan.yaml <<'PLAN'
baseline: runs/s_base
candidates:
  - {path: runs/bug_double_layer1, name: doubled, expect: inconsistent}
  - {path: runs/missing, name: gone, expect: error}
  - {path: runs/tp2dp2, name: good}
PLAN
echo "- what fails as planned fails nothing:"
swept --plan plan.yaml
sed -i 's/name: good/&, expect: inconsistent/' plan.yaml
echo "- and what passes where it should fail does:"
swept --plan plan.yaml
