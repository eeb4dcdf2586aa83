# --hdf5: one file with all figures; what is in it is read back in tests/unit/core/test_report_hdf5.c.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
try -q --hdf5 report.h5 s_base bug_double_layer1 tp2dp2
head -c 4 report.h5 | od -An -c
# Our own reader finds the columns.
gradcmp ls report.h5 | grep -E 'candidates.(0.rel|1.norm_b|0.heat.*)$' 
# The same report again, byte for byte; and in place of such a report only.
cp report.h5 first.h5
try -q --threads 1 --hdf5 report.h5 s_base bug_double_layer1 tp2dp2
cmp first.h5 report.h5 && echo the same bytes
gradcmp extract --state exp_avg s_base -o tensors.h5
try -q --hdf5 tensors.h5 s_base tp2dp2
try -q --hdf5 - s_base tp2dp2
try -q --hdf5 x.h5 --json x.h5 s_base tp2dp2
try -q --hdf5 none/x.h5 s_base tp2dp2
try check --hdf5 x.h5 s_base
# A candidate that cannot be read has no figures, and its error.
mkdir broken
try -q --hdf5 broken.h5 s_base broken tp2dp2
cp "$TESTS_CLI/../../examples/sweep.yaml" .
try sweep -q --hdf5 sweep.h5 --plan sweep.yaml data/megatron
GRADCMP_H5HELPER=/nowhere gradcmp -q --hdf5 no.h5 s_base tp2dp2 2>&1 || echo "(exit $?)"
(
    ulimit -f 16
    gradcmp -q --hdf5 no.h5 s_base bug_double_layer1
) >out 2>&1 || echo "(exit $?)"
cat out
ls -A | grep -E '^no|tmp' || echo nothing was left
