# Rows that one side lacks are words, where the vocabulary is known to have them.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
code=0
gradcmp --vocab 75 s_base tp2dp2 | tail -n 1 || code=$?
gradcmp --vocab 72 s_base tp2dp2 | tail -n 1
# What is asked for must not leave out words, and be there.
try -q --vocab 60 s_base tp2dp2
try -q --vocab 81 s_base tp2dp2
try -q --vocab 71 s_base tp2dp2
