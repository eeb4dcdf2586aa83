# Two runs that write one report: it is that of one of them, whole, and nothing else is left.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
for form in json html junit markdown hdf5; do
    gradcmp -q --$form "one.$form" s_base tp2dp2 || true
    gradcmp -q --$form "other.$form" s_base bug_zero_layer2 || true
    ! cmp -s "one.$form" "other.$form" || echo "--$form: the reports do not differ"
    wrong=0
    for round in 1 2 3 4; do
        gradcmp -q --$form "both.$form" s_base tp2dp2 &
        gradcmp -q --$form "both.$form" s_base bug_zero_layer2 &
        wait
        cmp -s "both.$form" "one.$form" || cmp -s "both.$form" "other.$form" || wrong=$((wrong + 1))
    done
    echo "--$form: $wrong of 4 are neither"
done
ls -A | grep tmp || true
