# One checkpoint, trace or series of metrics under two names proves nothing; compare says it in the same words.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
ln -s data/megatron/s_base base
copy_checkpoint s_base original
cp -al original linked
try bits base base
try bits base base/iter_0000001
try bits original linked
try bits --quiet base original base
try bits --quiet --allow-same base base
ops trace 0 3 4 5
ops trace 1 3 4 5
ln -s trace link
cp -a trace twin
try trace trace trace
try trace trace link
try trace --quiet trace twin
try trace --quiet --allow-same trace trace
cp -r data/metrics/a events
cp -al events hard
ln events/* one.tfevents
try metrics events events
try metrics events hard
try metrics one.tfevents events
try metrics --quiet events data/metrics/a
try metrics --quiet --allow-same events events
