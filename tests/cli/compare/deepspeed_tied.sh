# A weight tied over the stages of a pipeline: each stage has a copy of its gradient.
. "$TESTS_CLI/lib.sh"
d=data/deepspeed
try -q $d/tied_one $d/tied_two
# Copies whose reduction was left out are a finding in the candidate, and no baseline.
try $d/tied_one $d/tied_lost | sed -n '/^Failing/,$p'
try -q $d/tied_lost $d/tied_one
try check -q $d/tied_lost
try extract $d/tied_lost -o lost.safetensors
try extract $d/tied_lost -o lost.safetensors --exclude tied_modules
# Without ZeRO the tied weight has the name of its place in the pipeline, and each stage numbers its
# copy, in front of its other parameters.
try $d/tied_one $d/tied_one_stage0 | sed -n '/^Layers/,$p'
try -q $d/tied_one_stage0 $d/tied_two
try $d/tied_one_stage0 $d/tied_lost | sed -n '/^Layers/,/^$/p'
try -q $d/tied_one $d/tied_two_stage0
gradcmp ls --state exp_avg $d/tied_two_stage0 | sed -n '/unsharded/,$p'
# Modules of a pipeline come in order.
gradcmp ls --state exp_avg $d/pipeline | sed -n '/unsharded/,$p'
