# Across kinds of source several spellings are one name, and each series is judged.
. "$TESTS_CLI/lib.sh"
printf 'step,lm loss\n1,9.9\n2,9.8\n' >run.csv
golden() {
    printf '"%s": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 9.9, "2": %s}}' "$@"
}
printf '{%s, %s}' "$(golden lm-loss 9.8)" "$(golden lm_loss 5.0)" >two.json
try metrics run.csv two.json
try metrics two.json run.csv
# One that is spelt as in A is A's; the other is listed.
printf '{%s, %s}' "$(golden 'lm loss' 9.8)" "$(golden lm_loss 5.0)" >own.json
try metrics run.csv own.json
