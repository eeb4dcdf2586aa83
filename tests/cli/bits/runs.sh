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
