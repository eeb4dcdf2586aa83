. "$TESTS_CLI/lib.sh"
run=data/resume/run
try bits ${run}_a ${run}_b
try bits --iteration 2 ${run}_a ${run}_b
try bits ${run}_a ${run}_a/step_2.pt
try bits --json - ${run}_a ${run}_b
# No iteration in common.
mkdir other
cp ${run}_a/step_1.pt other/step_7.pt
cp ${run}_a/step_1.pt other/step_8.pt
try bits ${run}_a other

# A run that was resumed begins later. One that lost an iteration behind its first, or ended early,
# differs: that is told where nothing else is, and behind what differs in others.
copy() {
    mkdir $1
    for step in $2; do
        cp ${run}_a/step_1.pt $1/step_$step.pt
    done
}
copy whole '1 2 3 4'
copy resumed '3 4 5'
copy hole '1 3 4'
copy short '1'
try bits whole resumed
try bits whole hole
try bits hole whole
try bits whole short
cp ${run}_a/step_2.pt hole/step_4.pt
try bits whole hole
try bits --json - whole hole | grep 'verdict\|summary\|different_iteration'

# The iteration in a name: behind a word for it, a version added to a name that was taken; a number of
# epochs is another one, and that of a rank or a shard is none.
named() {
    mkdir $1
    folder=$1
    shift
    for pair in "$@"; do
        cp ${run}_a/step_${pair#*:}.pt $folder/${pair%:*}
    done
}
named versions step=1-v1.ckpt:1 epoch=0-step=2-v2.ckpt:2
named dotted model.step1.pt:1 model.step2.pt:2
named steps step_1.pt:1 step_2.pt:2
named epochs step_1.pt:1 step_2.pt:2 epoch_1.pt:2
try bits steps versions
try bits steps dotted
try bits steps epochs
try bits epochs steps
# Several checkpoints of one iteration are paired by their names; what the second run lacks differs.
named twice step_1.pt:1 step-1.pt:2 step_2.pt:2
try bits twice steps
try bits steps twice
try bits twice twice
# Files of ranks are one checkpoint.
named ranks checkpoint_rank0.pt:1 checkpoint_rank1.pt:1
named others checkpoint_rank0.pt:1 checkpoint_rank1.pt:2
try bits ranks others | tail -4
