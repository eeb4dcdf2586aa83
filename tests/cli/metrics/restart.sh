# A crash and a resume in one folder, the tensor form of a scalar, and one file in place of a folder.
. "$TESTS_CLI/lib.sh"
try metrics --quiet data/metrics/a data/metrics/restart
try metrics data/metrics/tensor/events.out.tfevents.1000.node0.1.0 data/metrics/restart
