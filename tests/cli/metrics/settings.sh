# Of tolerances and ratios for one metric the last one holds, and the command line over a file.
. "$TESTS_CLI/lib.sh"
echo '{"lm loss": {"6": 1.0, "7": 1.0}}' >a.json
echo '{"lm loss": {"6": 1.15, "7": 1.15}}' >b.json
printf 'mode: approx\ntolerance: ["lm loss=0.1"]\n' >c.yaml
try metrics --quiet --config c.yaml a.json b.json
try metrics --quiet --config c.yaml --tolerance "lm loss=0.2" a.json b.json
try metrics --quiet --config c.yaml --tolerance "LM-Loss=0.2" a.json b.json
try metrics --quiet --mode approx --tolerance "lm loss=0.2" --tolerance "lm loss=0.1" a.json b.json
try metrics --quiet --max-ratio "lm loss=1" --max-ratio "lm loss=2" a.json b.json
try metrics --quiet --config c.yaml --tolerance "loss=0.2" a.json b.json

# Exact over a file that says approx; what belongs to approx and is said beside exact is none of it.
try metrics --config c.yaml --mode exact a.json b.json
try metrics --quiet --config c.yaml --mode exact --tolerance "lm loss=0.2" a.json b.json
echo 'tolerance: ["lm loss=0.1"]' >c.yaml
try metrics --quiet --config c.yaml a.json b.json
try metrics --quiet --config c.yaml --mode approx a.json b.json
