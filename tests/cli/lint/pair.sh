. "$TESTS_CLI/lib.sh"
try lint --pair data/lint/launch.sh data/lint/launch_tp4.sh
try lint --pair data/lint/launch.sh data/lint/launch.sh
try lint --pair data/megatron/s_base data/megatron/bug_double_layer1

# Values are compared as they are written: paths have a case. Case says nothing of True and true, of
# words that a library reads without it, and of versions; and 1e-5 is 0.00001.
pair() {
    printf '%s\n' "$1" >one.$3
    printf '%s\n' "$2" >two.$3
    try lint --pair one.$3 two.$3
}
pair 'torchrun pretrain_gpt.py --data-path /data/C4 --seed 1' \
    'torchrun pretrain_gpt.py --data-path /data/c4 --seed 1' sh
pair '{"seed": 9007199254740993, "data_path": "a"}' '{"seed": 9007199254740992, "data_path": "A"}' json
pair 'export NCCL_ALGO=Ring NCCL_TOPO_FILE=/A.xml HCCL_DETERMINISTIC=TRUE
torchrun pretrain_gpt.py --bf16 True --norm-epsilon 1e-5' \
    'export NCCL_ALGO=RING NCCL_TOPO_FILE=/a.xml HCCL_DETERMINISTIC=true
torchrun pretrain_gpt.py --bf16 true --norm-epsilon 0.00001' sh
pair 'torch==2.6.0+CU124
apex @ file:///src/Apex' 'torch==2.6.0+cu124
apex @ file:///src/apex' txt

# What only the running shell knows reads alike, and need not be the same.
pair 'torchrun pretrain_gpt.py --data-path "$DATA" --log-interval "$EVERY" --seed 1' \
    'torchrun pretrain_gpt.py --data-path "$DATA" --log-interval "$EVERY" --seed 1' sh
pair 'torchrun pretrain_gpt.py --seed 1 $ARGS' 'torchrun pretrain_gpt.py --seed 1' sh
