# More candidates than descriptors: each is judged, and the report has its file.
. "$TESTS_CLI/lib.sh"
mkdir runs
ln -s "$PWD/data/megatron/s_base" base
i=0
while [ $i -lt 60 ]; do
    i=$((i + 1))
    ln -s "$PWD/data/megatron/bug_double_layer1" runs/c$i
done
for files in 1024 48; do
    (
        ulimit -n $files
        echo "$files descriptors"
        gradcmp --threads 4 --json compare.json base runs/* >compare.txt || true
        tail -n 1 compare.txt
        grep -c '"path": "runs/' compare.json
        gradcmp check --threads 4 runs/* | grep -c CLEAN
        gradcmp bits --threads 4 base runs/* | grep -c '^differs'
        gradcmp fit --threads 4 -o fit.json base runs/* | tail -n 1
    )
done
