# Rows that one side lacks are words, where the vocabulary is known to have them.
ln -s data/megatron/* .
code=0
gradcmp --vocab 75 s_base tp2dp2 | tail -n 1 || code=$?
gradcmp --vocab 72 s_base tp2dp2 | tail -n 1
