. "$TESTS_CLI/lib.sh"
# As round_trip, to HDF5: chosen by the name or by --format.
last() {
    code=0
    gradcmp "$@" >report 2>&1 || code=$?
    tail -n 1 report
    echo "(exit $code)"
}
try extract data/megatron/moe_tp2ep2 -o all.h5
last data/megatron/moe_tp2ep2 all.h5
try extract --state exp_avg data/megatron/s_base --format hdf5 -o grads
last grads data/megatron/s_base
gradcmp extract --as float32 data/megatron/tp2_bf16_exp_avg -o narrow.hdf5
last data/megatron/tp2_bf16_exp_avg narrow.hdf5
# Every tensor is what it was: shapes, types, layers, bits.
for name in fr_pp2dp2 tied_pp2 moe_base dr_dp2; do
    gradcmp extract data/megatron/$name -o $name.h5
    gradcmp ls --stats --json - data/megatron/$name | sed -n 's/"pieces": [0-9]*, //; s/"copies": [0-9]*, //; /"sha256"/p' >before
    gradcmp ls --stats --json - $name.h5 | sed -n 's/"pieces": [0-9]*, //; s/"copies": [0-9]*, //; /"sha256"/p' >after
    cmp before after && echo "$name: $(wc -l <after) tensors alike"
done
# Elements are compressed.
[ "$(wc -c <dr_dp2.h5)" -gt 0 ] && gradcmp ls dr_dp2.h5 | sed -n '1,/^$/p'
# Where nothing can be written nothing is left behind.
try extract data/megatron/s_base -o grads
try extract data/megatron/s_base -o grads.txt
try extract --format hdf5 data/megatron/s_base -o /dev/null
GRADCMP_H5HELPER=/nowhere gradcmp extract data/megatron/s_base -o no.h5 || echo "(exit $?)"
printf '#!/bin/sh\nexit 3\n' >helper
chmod +x helper
GRADCMP_H5HELPER=$PWD/helper gradcmp extract data/megatron/s_base -o no.h5 || echo "(exit $?)"
(
    ulimit -f 16
    gradcmp extract data/megatron/s_base -o no.h5
) >out 2>&1 || echo "(exit $?)"
cat out
ls -A | grep -E '^no|tmp' || echo nothing was left
