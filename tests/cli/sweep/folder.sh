# All checkpoints below a folder against the one with the fewest ranks; one that cannot be read costs
# its own row and the exit code.
. "$TESTS_CLI/lib.sh"
mkdir -p runs/deep
for name in s_base tp2dp2 fr_pp2dp2 bug_double_layer1; do
    copy_checkpoint $name runs/$name
done
copy_checkpoint dr_dp2 runs/deep/dr_dp2
copy_checkpoint tp2_perlayer runs/broken
rm runs/broken/iter_0000001/.metadata
mkdir runs/empty
echo text >runs/notes.txt
try sweep runs
try sweep --baseline tp2dp2 --match fc1 runs
rm -r runs/broken
try sweep runs
rm -r runs/bug_double_layer1
try sweep -q runs
try sweep runs/empty
# JSON: one object a candidate, and what the sweep adds.
gradcmp sweep --json - runs | sed -n '/"baseline_label"/,/"candidates"/p; /"label"/p'
