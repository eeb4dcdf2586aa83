# Sources of different kinds meet at the printed digits of the coarser one.
. "$TESTS_CLI/lib.sh"
try metrics data/metrics/a data/metrics/run.log
try metrics data/metrics/golden.json data/metrics/a
try metrics data/metrics/run.log data/metrics/run_cut.log
printf 'step,"lm loss",note\r\n1,"3.77",\r\n2,3.69,\r\n' >run.csv
try metrics run.csv data/metrics/run.log
