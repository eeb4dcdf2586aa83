# Repeats are compared bit for bit by the first copy of each gradient; what the copies within a run say
# counts as well, also when it is taken over.
. "$TESTS_CLI/lib.sh"
cat >model_config.yaml <<'RECIPE'
MODEL_ARGS:
  --num-layers: 3
MODEL_ARGS_2:
  --num-layers: 3
RECIPE
sweep() {
    python3 "$TESTS_CLI/sweep/recipe_copies.py" "$@"
    try sweep --dtype fp32 --resume "$1.state" --json "$1.json" --plan model_config.yaml "$1" |
        sed -n '/^Repeats/,$p'
    sed -n '/"repeats"/,/"left_out"/p' "$1.json" | grep -o '"elements.*'
}
# The copy of one rank is three times the other; it differs inside the bound; in both runs alike.
sweep beyond repeat_1_key_1=1 repeat_1_key_2=1 repeat_2_key_2=3
try sweep --dtype fp32 --resume beyond.state --plan model_config.yaml beyond | sed -n '/^Repeats/,$p'
sweep inside repeat_1_key_1=1 repeat_1_key_2=1 repeat_2_key_2=1.0000003
sweep alike repeat_1_key_1=1 repeat_1_key_2=1.0000003 repeat_2_key_2=1.0000003
sweep same repeat_1_key_1=1 repeat_1_key_2=1 repeat_2_key_2=1
# Of the baseline's own configuration.
sweep first repeat_1_key_1=1 repeat_2_key_1=3 repeat_1_key_2=1
