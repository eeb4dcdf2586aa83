# One file of several named in place of the folder: what the others hold would look missing.
. "$TESTS_CLI/lib.sh"
mkdir whole
cp data/safetensors/consolidated/*.safetensors data/safetensors/consolidated/*.json whole
first=model-00001-of-00002.safetensors
try --quiet whole/$first data/safetensors/consolidated
try --quiet data/safetensors/consolidated whole/$first
try bits --quiet data/safetensors/consolidated whole/$first
try --quiet whole/$first data/safetensors/consolidated/model-00002-of-00002.safetensors
try --quiet whole/$first data/safetensors/consolidated/$first
# Without the others it is no part of anything that could be named.
mkdir alone
cp whole/$first alone
try --quiet alone/$first whole
cd whole
try --quiet $first ../data/safetensors/consolidated
