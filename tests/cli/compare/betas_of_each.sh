# Parameters with betas or steps of their own: compared where both sides average each alike.
. "$TESTS_CLI/lib.sh"
ln -s data/dcp/* data/betas/*.pt .
try -q groups_own groups_own_flat
try -q groups_own groups_swapped
try -q groups_own one_ahead
try -q one_ahead groups_own
try -q --exclude ^b groups_own groups_own_flat
# All at another step, where nothing else tells of it.
try -q one_ahead all_ahead
try -q --exclude '^c' one_ahead all_ahead
try -q --exclude '^c' --allow-iterations one_ahead all_ahead
# One parameter of a file of torch.save.
try -q usual.pt one_ahead.pt
try -q zero.pt one_ahead.pt
try -q --allow-same one_ahead.pt one_ahead.pt
try --allow-same one_ahead.pt one_ahead.pt | sed -n '/Notes/,$p'
