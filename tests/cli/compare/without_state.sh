# Weights of an optimizer that keeps no state: nothing is compared of them, which is told.
. "$TESTS_CLI/lib.sh"
d=data/torch_save
try $d/sgd_beside.pt $d/sgd_beside_bug.pt | tail -n 8
try --exclude weight $d/sgd_beside.pt $d/sgd_beside_bug.pt | tail -n 3
