# What lies in the swept folder and is not compared is told in every report; what only seems to be of
# another iteration, or lies far down, is compared.
. "$TESTS_CLI/lib.sh"
put() {
    mkdir -p "${2%/*}"
    cp -R "data/megatron/$1/iter_0000001" "$2"
    chmod -R u+w "$2"
}
put s_base runs/a/iter_0000001
put tp2dp2 runs/b/iter_0000001
put tp2dp2 runs/a/iter_0000002
put tp2dp2 runs/c/iter_0000002
put tp2dp2 runs/b/iter_0000003
# The number is no iteration; there is none, and the checkpoint says one.
put bug_double_layer1 runs/tp2
mkdir runs/export runs/later runs/silent runs/b/best
gradcmp extract data/megatron/bug_zero_layer2 -o runs/export/model.safetensors
sed 's/"gradcmp.iteration": "1"/"gradcmp.iteration": "7"/' runs/export/model.safetensors >runs/later/x.safetensors
sed 's/"gradcmp.iteration"/"gradcmp.jteration"/' runs/export/model.safetensors >runs/silent/x.safetensors
# One more of a run that has one of this iteration; the same without.
cp runs/silent/x.safetensors runs/b/best/model.safetensors
try sweep --iteration 1 --baseline a/iter_0000001 runs
try sweep --iteration 9 runs/c
gradcmp sweep --iteration 1 --baseline a/iter_0000001 --annotations github --json report.json \
    --html report.html --junit report.xml --markdown report.md runs >report 2>lines || true
for file in report.json report.html report.xml report.md lines; do
    echo "- $file:"
    grep -o '[0-9]* checkpoints not of iteration 1' $file
done
# What says no iteration is left out where it is no checkpoint, or lacks the state; else it is judged.
mkdir -p night/cache night/export
put s_base night/base/iter_0000001
put tp2dp2 night/split/iter_0000001
yes data | head -c 4096 >night/corpus.bin
cp night/corpus.bin night/cache/index.bin
gradcmp extract --state param data/megatron/bug_zero_layer2 -o weights.safetensors
sed 's/"gradcmp.iteration"/"gradcmp.jteration"/' weights.safetensors >night/export/model.safetensors
try sweep --iteration 1 night
gradcmp sweep --iteration 1 --state param night | grep '^export\|^SWEEP\|^left out' || true
# One that says this iteration itself is of it, whatever it lacks.
cp weights.safetensors night/export/model.safetensors
try sweep --iteration 1 night
# Files with the number in their names.
mkdir files
cp data/previous/usual_step3.pt files/run1_step3.pt
cp data/previous/other_step3.pt files/run2_step3.pt
cp data/previous/other_step3.pt files/run2_step4.pt
ln -s "$DATA/previous/wrong_step3.pt" files/wrong.pt
ln -s "$DATA/previous/make.py" files/make.py
try sweep --iteration 3 --baseline run1_step3.pt files
# Far down: compared; out of reach: told; a link upwards comes to an end.
mkdir far
put s_base far/base
put tp2dp2 far/1/2/3/4/5/6/7/8/9/10/good
deep=far
for level in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33; do
    deep=$deep/x
done
put bug_double_layer1 "$deep/bad"
try sweep --baseline base far
rm -r far/x
ln -s .. far/1/up
gradcmp sweep --baseline base --allow-same far | sed -n '/^SWEEP/p'
