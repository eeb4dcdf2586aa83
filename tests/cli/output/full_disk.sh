# A report that could not be written is trouble: one line, exit 2.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
full() {
    code=0
    gradcmp "$@" 2>&1 >/dev/full || code=$?
    echo "$*: exit $code"
}
full s_base tp2dp2
full --json - s_base tp2dp2
full ls s_base
full ls --json --stats s_base
full --help
full --version
try --json /dev/full --quiet s_base tp2dp2
try ls --json=/dev/full s_base
# A file that grows beyond its limit leaves nothing behind.
(
    ulimit -f 2
    try --json report.json --quiet s_base tp2dp2
)
ls -A | grep -c -e tmp -e report || true
