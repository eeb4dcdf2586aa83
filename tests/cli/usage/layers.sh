# --layers says how many layers there are where names would tell less: the bound reaches as far, and
# what is extracted keeps it. Fewer than there are is a mistake.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
for layers in 4 8; do
    gradcmp --layers $layers s_base tp2dp2 | sed -n '/^layers/p; /^bound/,/^$/p; /^CONSISTENT/p'
done
try --layers 3 s_base tp2dp2
try sweep --layers 3 --baseline s_base data/megatron
gradcmp extract --layers 8 --state exp_avg s_base -o eight.safetensors
gradcmp ls eight.safetensors | grep '^layers'
gradcmp ls --layers 9 eight.safetensors | grep '^layers'
gradcmp check -q --layers 4 s_base
gradcmp fit -q --layers 8 -o eight.yaml s_base tp2dp2
grep '^layers' eight.yaml
try -q --fit eight.yaml s_base tp2dp2
gradcmp -q --layers 8 --fit eight.yaml s_base tp2dp2
gradcmp bits -q --layers 4 s_base dr_dp2 || echo "bits: exit $?"
