. "$TESTS_CLI/lib.sh"
try lint data/lint/rank0.environ data/lint/rank1.environ
try lint data/lint/model_config.yaml
try lint data/lint/npu.log
try lint --rules gradients data/megatron/s_base
try lint --rules gradients --strict --quiet data/megatron/s_base
