# Muon's momentum stands for the first moment in Megatron's legacy checkpoints too, on every rank; what
# the optimizer keeps nothing of is told.
. "$TESTS_CLI/lib.sh"
python3 "$TESTS_CLI/compare/muon_legacy.py"
try whole stages | sed -n '/^compared/p; /^Notes/,$p'
try whole double | tail -n 3
try frozen whole | tail -n 3
cp -R frozen again
try frozen again | sed -n '/^compared/p; /^Notes/,$p'
