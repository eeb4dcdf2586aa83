# A crash and a resume in one folder, the tensor form of a scalar, and one file in place of a folder.
. "$TESTS_CLI/lib.sh"
try metrics --quiet data/metrics/a data/metrics/restart
try metrics data/metrics/tensor/events.out.tfevents.1000.node0.1.0 data/metrics/restart

# Where a restart wrote another value, the run disagrees with itself: a difference, in approximate
# mode where it is beyond the tolerance, however often it was written and however few steps it is.
printf 'step,lm loss,iteration-time\n' >once.csv
for step in 1 2 3 4 5 6 7; do
    printf '%s,9.5,2.0\n' $step >>once.csv
done
again() {
    cp once.csv twice.csv
    printf '%s\n' "$@" >>twice.csv
}
again 5,9.5,9.0 5,9.6,9.0
try metrics --mode approx once.csv twice.csv
try metrics --mode approx --tolerance 'lm loss=0.005' once.csv twice.csv
again 5,900,2.0
try metrics --mode approx once.csv twice.csv
try metrics --mode approx twice.csv once.csv
again 5,9.6,2.0 5,900,2.0 5,9.5,2.0
try metrics -q --mode approx once.csv twice.csv
again 5,nan,2.0 5,9.6,2.0
try metrics -q --mode approx once.csv twice.csv
