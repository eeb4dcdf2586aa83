. "$TESTS_CLI/lib.sh"
# A match that leaves steps outside the tolerance says so.
printf 'step,loss\n1,2.5\n2,2.4\n3,2.3\n' >a.csv
printf 'step,loss\n1,2.5\n2,2.4\n3,2.9\n' >b.csv
try metrics --mode approx a.csv b.csv
# A run that disagrees with itself is named.
printf 'step,loss\n1,2.5\n1,2.6\n2,2.4\n3,2.3\n' >twice.csv
try metrics a.csv twice.csv
gradcmp metrics --json twice.json a.csv twice.csv >/dev/null || true
grep '"first_mismatch": ' twice.json
# Ratios of times need steps behind the warm-up; -q keeps to itself what it found, not why there is no answer.
printf 'step,lm loss,iteration-time\n1,9.5,1.0\n2,9.4,1.1\n3,9.3,1.0\n' >short.csv
cp short.csv same.csv
try metrics --max-ratio iteration-time=1.1 short.csv same.csv
try metrics -q --max-ratio iteration-time=1.1 short.csv same.csv
try metrics -q nothere same.csv
try lint -q nothere
