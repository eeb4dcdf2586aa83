gradcmp data/megatron/s_base data/megatron/tp2_perlayer
