. "$TESTS_CLI/lib.sh"
# What is not compared is named: JSON files, and what a format keeps beside its tensors.
try bits --allow-same data/safetensors/sharded data/safetensors/sharded
try bits --allow-same data/safetensors/consolidated data/safetensors/consolidated
