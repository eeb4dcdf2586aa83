# Where the sides agree only on values that neither has, nothing was compared.
. "$TESTS_CLI/lib.sh"
echo '{"lm loss": {"1": "nan", "2": "nan", "3": null}}' >a.json
echo '{"lm loss": {"7": 1.0}}' >b.json
try metrics a.json b.json
try metrics --quiet --mode approx --tolerance "lm loss=0.1" a.json b.json
try metrics --quiet --max-ratio iteration-time=2 a.json b.json
try metrics --quiet a.json a.json

# Beside others it is told.
echo '{"lm loss": {"1": 1.5}, "num-zeros": {"1": "nan"}}' >a.json
cp a.json b.json
try metrics a.json b.json
try metrics --quiet --mode approx a.json b.json
echo '{"iteration-time": {"1": "nan"}, "lm loss": {"1": 1.5}}' >a.json
cp a.json b.json
try metrics --max-ratio iteration-time=2 a.json b.json

# A value on one side is a difference, and a NaN that both sides have is a value.
echo '{"lm loss": {"1": "nan", "2": 1.5}}' >a.json
echo '{"lm loss": {"1": 2.5}}' >b.json
try metrics --quiet a.json b.json
printf 'step,loss\n1,nan\n' >a.csv
cp a.csv b.csv
try metrics --quiet a.csv b.csv
