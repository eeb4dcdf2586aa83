#!/bin/bash
export NVTE_ALLOW_NONDETERMINISTIC_ALGO=0 CUBLAS_WORKSPACE_CONFIG=:4096:8
export NCCL_ALGO=Ring
ARGS="--seed 7 --deterministic-mode"
run() {
    torchrun pretrain_gpt.py $ARGS
}
if [ -n "$OVERLAP" ]; then
    ARGS="$ARGS --tp-comm-overlap"
fi
export NCCL_ALGO=Tree
run
