# Optimizer state that one rank gathered into an object: the masters in it tell the layout.
. "$TESTS_CLI/lib.sh"
ln -s data/gathered/* .
try tp1 tp2
