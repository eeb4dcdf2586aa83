. "$TESTS_CLI/lib.sh"
try metrics data/metrics/golden.json data/metrics/golden.json
try metrics --mode approx data/metrics/golden.json data/metrics/golden_outside.json
try metrics --mode approx --tolerance 'lm loss=0.1' data/metrics/golden.json data/metrics/golden_outside.json
try metrics --match iteration-time --max-ratio iteration-time=1.15 data/metrics/a data/metrics/ulp
try metrics --match iteration-time --max-ratio iteration-time=1.01 data/metrics/a data/metrics/ulp
