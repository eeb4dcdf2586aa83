. "$TESTS_CLI/lib.sh"
# What is extracted is what was there: no difference, whatever the layout it came from.
try extract data/megatron/moe_tp2ep2 -o all.safetensors
gradcmp data/megatron/moe_tp2ep2 all.safetensors | tail -n 1
try extract --state exp_avg --as float32 data/megatron/tp2_bf16_exp_avg -o grads.safetensors
gradcmp data/megatron/tp2_bf16_exp_avg grads.safetensors | tail -n 1
# Nothing is overwritten, and nothing is left behind after a refusal.
try extract data/megatron/s_base -o all.safetensors
try extract --state nosuch data/megatron/s_base -o other.safetensors
try extract --match nosuch data/megatron/s_base -o other.safetensors
try extract data/megatron/s_base -o other.pt
try extract data/megatron/s_base
ls other* 2>/dev/null || echo nothing else was written
