# JUnit by parameter, by layer and by candidate, as Python reads it; suites add up.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
for level in parameter layer candidate; do
    try -q --junit "$level.xml" --junit-level $level s_base tp2dp2 missing bug_nan_fc2_2 bug_double_layer1
    python3 "$TESTS_CLI/reports/markup.py" junit "$level.xml"
done
try check -q --junit check.xml s_base bug_nan_fc2_2 missing
python3 "$TESTS_CLI/reports/markup.py" junit check.xml
# A model whose gradients are all zero in one layer: unjudged is skipped, under --strict it fails.
try -q --junit strict.xml --strict --match layer_norm s_base tp2dp2
python3 "$TESTS_CLI/reports/markup.py" junit strict.xml
