# Weights of an optimizer that keeps no state: nothing is compared of them, which is told, in the last
# line too where they are much of the model. A tied name of a weight that is compared is none of them.
. "$TESTS_CLI/lib.sh"
d=data/torch_save
try $d/sgd_beside.pt $d/sgd_beside_bug.pt | tail -n 8
try --exclude weight $d/sgd_beside.pt $d/sgd_beside_bug.pt | tail -n 3
cp $d/tied.pt .
try $d/tied.pt tied.pt | tail -n 3
