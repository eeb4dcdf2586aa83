# The environment of a running process, as the system shows it: a file that says it is empty.
. "$TESTS_CLI/lib.sh"
env -i NCCL_ALGO=Tree NVTE_ALLOW_NONDETERMINISTIC_ALGO=1 "$(command -v sleep)" 60 &
while ! tr '\0' '\n' </proc/$!/environ | grep -q NVTE; do sleep 0.1; done
(cd /proc/$! && try lint environ)
kill $!
: >empty
try lint empty
