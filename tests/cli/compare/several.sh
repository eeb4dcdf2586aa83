# Each candidate is judged; one that cannot be read costs its own row and the exit code only.
cd data/megatron
gradcmp s_base tp2dp2 missing bug_double_layer1
