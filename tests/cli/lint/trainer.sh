# A trainer that is not Megatron's: its arguments mean nothing to the rules, and that is told.
. "$TESTS_CLI/lib.sh"
echo 'torchrun --nproc-per-node 8 train.py --lr 1e-4 --seed 3' >plain.sh
echo 'torchrun train.py "$@"' >passed_on.sh
try lint plain.sh
try lint passed_on.sh
