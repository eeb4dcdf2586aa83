# An optimizer counts no update that was skipped or gathered: what it counted never contradicts
# --iteration, what a checkpoint states itself does.
. "$TESTS_CLI/lib.sh"
make() { python3 "$TESTS_CLI/sweep/counted.py" "$@"; }
sweep() { try sweep --dtype fp32 "$@" | sed '/^Worst/,/^$/d'; }
# The name says it; the folder around a file says it.
make names/a/step_10.pt=7 names/a/step_20.pt=17 names/b/step_10.pt=7 names/b/step_20.pt=17
sweep --iteration 10 --baseline names/a/step_10.pt names
make around/a/step_10/run.pt=7 around/a/step_20/run.pt=17 around/b/step_10/run.pt=7 around/b/step_20/run.pt=17
sweep --iteration 10 --baseline around/a/step_10/run.pt around
try --quiet --dtype fp32 --iteration 10 around/a/step_10 around/b/step_10
# Nothing says it: counts are iterations where one of them is the wanted one.
make silent/a/run.pt=10 silent/a/last.pt=20 silent/b/run.pt=10
sweep --iteration 10 --baseline silent/a/run.pt silent
make less/a/run.pt=7 less/b/run.pt=7
sweep --iteration 10 --baseline less/a/run.pt less
# What is stated contradicts.
make stated/a/step_10.pt=7:10 stated/b/step_10.pt=7:9
try --quiet --dtype fp32 --iteration 10 stated/a/step_10.pt stated/b/step_10.pt
# What is extracted keeps which of both it is.
try extract -o a.safetensors names/a/step_10.pt
try check --quiet --iteration 10 a.safetensors
try extract -o b.safetensors stated/b/step_10.pt
try check --quiet --iteration 10 b.safetensors
