# The mark of UTF-8 before a text is none of it, whatever kind it is of.
. "$TESTS_CLI/lib.sh"
marked() { # FILE OF
    { printf '\357\273\277'; cat "$2"; } >"$1"
}
echo '{"lm loss": {"1": 1.5}}' >a.json
marked b.json a.json
try metrics --quiet a.json b.json
echo '{"lm loss": {"1": 2.5}}' >a.json
try metrics --quiet a.json b.json
echo '{"lm loss": {"1": oops}}' >a.json
marked b.json a.json
try metrics --quiet b.json b.json
printf 'step,loss\n1,2.5\n' >a.csv
marked b.csv a.csv
try metrics --quiet a.csv b.csv
marked run.log data/metrics/run.log
try metrics --quiet data/metrics/run.log run.log
