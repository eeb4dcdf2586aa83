. "$TESTS_CLI/lib.sh"
# What is not compared is named: JSON files, and what a format keeps beside its tensors.
try bits data/safetensors/sharded data/safetensors/sharded
try bits data/safetensors/consolidated data/safetensors/consolidated
