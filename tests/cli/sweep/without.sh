# A folder of a run that saved nothing is named, as is a hidden one with a checkpoint; what else lies
# beside the runs is one line, whatever it is.
. "$TESTS_CLI/lib.sh"
put() {
    mkdir -p "$2"
    cp -R "data/megatron/$1/iter_0000001" "$2"
    chmod -R u+w "$2"
}
sweep() { try sweep "$@" | sed '/^Worst/,/^$/d'; }
put s_base runs/tp1
put tp2dp2 runs/tp2
sweep runs
# Saved nothing: an empty step, one that broke off, the traces beside a checkpoint that is gone.
mkdir -p runs/tp4/iter_0000001 runs/tp8/iter_0000001/x runs/hf/last runs/tp1/iter_0000002
touch runs/tp4/log.txt runs/tp8/iter_0000001/__0_0.distcp.tmp runs/hf/last/trainer_state.json
sweep runs
# Neither that nor a run: logs, code, digits for a name; below a run they are of no interest.
mkdir -p runs/logs/tensorboard runs/src/tools runs/0 runs/none runs/tp1/logs/1 runs/.git/objects/00
touch runs/logs/events.out runs/src/train.py runs/.git/HEAD
sweep runs
# A checkpoint is in a hidden folder, however far down.
put bug_double_layer1 runs/.trash/tp16
put bug_double_layer1 runs/tp2/.old
sweep runs
# Where another iteration is wanted, a tracker alone does not make a run.
echo 5 >runs/none/latest_checkpointed_iteration.txt
sweep --iteration 1 runs
gradcmp sweep --annotations github --json report.json --html report.html --junit report.xml \
    --markdown report.md --iteration 1 runs >report 2>lines || true
for file in report.json report.html report.xml report.md lines; do
    echo "- $file:"
    grep -o '[0-9]* [a-z ]*folder[a-z ]*without a checkpoint\|[0-9]* hidden folders with' $file
done
