# Files of ranks, or an optimizer beside weights, are one checkpoint; other files are one each.
. "$TESTS_CLI/lib.sh"
mkdir runs
cp -R data/torch_save/apart data/torch_save/stages data/torch_save/unreduced runs
chmod -R u+w runs
mkdir runs/single
cp data/torch_save/tied.pt runs/single/a.pt
cp data/torch_save/tied.pt runs/single/lora_rank8.pt
try sweep runs --baseline runs/apart
