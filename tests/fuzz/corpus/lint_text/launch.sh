#!/bin/bash
# NCCL_ALGO=Tree is not a setting here
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_ALGO="Ring,Tree"
export NVTE_ALLOW_NONDETERMINISTIC_ALGO=0
export CUBLAS_WORKSPACE_CONFIG=${CUBLAS_WORKSPACE_CONFIG:-:4096:8}
ARGS=(
    --num-layers 12
    --tensor-model-parallel-size 2 # two ranks
    --tp-comm-overlap
    # --cross-entropy-loss-fusion
    --deterministic-mode
)
MAMBA_DETERMINISTIC=1 torchrun --nproc_per_node 8 pretrain_gpt.py \
    "${ARGS[@]}" \
    --bf16
export NCCL_ALGO=Ring
