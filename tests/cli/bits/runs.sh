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
