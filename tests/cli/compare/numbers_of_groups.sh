# Optimizers saved as they are, in distributed checkpoints: numbers are named by the names that their
# groups list, else by the groups, and where that leaves it open they stand for themselves.
. "$TESTS_CLI/lib.sh"
ln -s data/dcp/numbers/* .
verdict() {
    try --state momentum_buffer "$@" | grep -A 99 -e '^Notes' -e '^gradcmp:' -e CONSISTENT
}
# Made from the parameters in another order: all of one shape.
gradcmp ls named_reversed | sed -n '/^Tensors/,$p'
verdict named named_reversed
# Two groups, and two optimizers.
verdict groups two_optimizers
gradcmp ls two_optimizers | sed -n '/^Tensors/,$p'
# A frozen layer leaves it open, and so does an optimizer alone.
for run in frozen alone; do
    gradcmp ls $run | sed -n '/^Tensors/,$p'
    verdict --allow-same $run $run
    try bits -q $run $run
done
try --state param --allow-same frozen frozen | grep CONSISTENT
try check frozen
verdict named alone
verdict frozen named
verdict frozen alone
# One optimizer with names, and one without, whose number could be either of two weights.
gradcmp ls some_named | sed -n '/^Tensors/,$p'
verdict --allow-same some_named some_named
# A list of names that is damaged, or shorter than that of the parameters.
python3 "$TESTS_CLI/compare/numbers_spoilt.py" data/dcp/numbers/named_reversed damaged fewer
try ls damaged
try ls fewer
