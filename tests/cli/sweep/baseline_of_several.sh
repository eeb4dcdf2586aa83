# Of several with the least parallelism the first by name is the baseline, which is said.
. "$TESTS_CLI/lib.sh"
mkdir runs
for name in s_base tied_base tp2dp2; do
    cp -R data/megatron/$name runs/$name
done
gradcmp sweep runs | sed -n '/^baseline/,/^ *$/p' | head -n 3 || :
rm -r runs/tied_base
gradcmp sweep runs | sed -n '/^baseline/,/^ *$/p' | head -n 3
