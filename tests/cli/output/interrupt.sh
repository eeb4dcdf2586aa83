# Ctrl-C, SIGTERM and a terminal that goes away end in one line, 128 plus the signal, and no half file.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
make_shim
interrupt() {
    code=0
    shimmed SHIM_SIGNAL="$1" "$GRADCMP" "$2" --json=report.json "$3" ${4-} ${5-} 2>&1 || code=$?
    echo "signal $1, $2: exit $code"
}
interrupt 2 compare s_base tp2dp2
interrupt 15 compare s_base tp2dp2
interrupt 1 compare s_base tp2dp2
interrupt 2 ls --stats s_base
[ ! -e report.json ]
# A signal that the caller has chosen to ignore stays ignored.
(
    trap '' INT
    interrupt 2 compare -q s_base tp2dp2
)
[ -s report.json ]
ls -A | grep tmp || true
# While a report is written: the first is too late to matter, the second leaves no part of it behind.
for form in json html junit markdown hdf5; do
    for times in 1 2; do
        code=0
        (shimmed SHIM_SIGNAL=2 SHIM_FLUSH=$times "$GRADCMP" -q --$form "late.$times" s_base tp2dp2) 2>&1 || code=$?
        echo "--$form, signal 2 while it is flushed, $times times: exit $code," late.* .gradcmp*
        rm -f late.*
    done
done
