# Tensors within the objects of a distributed checkpoint: bits looks into them, compare does not.
. "$TESTS_CLI/lib.sh"
cp -r data/dcp/unflattened one
cp -r one two
try one two
try bits one two
