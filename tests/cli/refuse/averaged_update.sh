# Adafactor's exp_avg is of updates, not of gradients: nothing can be said of these.
. "$TESTS_CLI/lib.sh"
d=data/torch_save
try $d/adafactor.pt $d/sgd_beside.pt
try $d/sgd_beside.pt $d/adafactor.pt
try check $d/adafactor.pt | tail -n 2
