. "$TESTS_CLI/lib.sh"
try metrics data/metrics/a data/metrics/cut
: >empty.json
printf '{"lm loss": {"values": {"1": 2.5,\n "2": NaN}}}\n' >nan.json
printf '{"lm loss": {"values": {"1": 2.5,\n "1": 2.5}}}\n' >twice.json
printf 'step,loss\n1,2\n2,x\n' >word.csv
mkdir nothing
for file in empty.json nan.json twice.json word.csv nothing missing data/metrics/README; do
    try metrics --quiet data/metrics/golden.json "$file"
    gradcmp metrics data/metrics/golden.json "$file" | tail -1
done
try metrics data/metrics/a
try metrics --tolerance x=1 data/metrics/a data/metrics/a
try metrics --mode approx --tolerance x=1 data/metrics/a data/metrics/a
try metrics --max-ratio 1.5 data/metrics/a data/metrics/a
try metrics --match '(' data/metrics/a data/metrics/a
