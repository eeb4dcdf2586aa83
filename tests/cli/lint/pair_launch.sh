# Two launches: all words of an option, overrides, the program, and what is neither.
. "$TESTS_CLI/lib.sh"
pair() { # ARGUMENTS ARGUMENTS: the findings and the last line
    printf 'export NCCL_ALGO=Ring\ntorchrun %s\n' "$1" >one.sh
    printf 'export NCCL_ALGO=Ring\ntorchrun %s\n' "$2" >two.sh
    printf '%s\n%s\n' "$1" "$2"
    { gradcmp lint --pair one.sh two.sh || :; } | grep -E '^  (error|warning|info)|^(PASS|WARN|FAIL)'
    echo
}
pair 'pretrain_gpt.py --seed 1 --data-path 0.5 a 0.5 b' 'pretrain_gpt.py --seed 1 --data-path 0.5 a 0.5 c'
pair 'pretrain_gpt.py --seed 1 --data-path 0.5 a --bf16' 'pretrain_gpt.py --seed 1 --data-path 0.5 --bf16'
pair 'pretrain_gpt.py --data-path 0.5 /data/$X --seed 1' 'pretrain_gpt.py --data-path 0.5 /data/$X --seed 1'
pair 'pretrain_gpt.py --shift -1 -2.5' 'pretrain_gpt.py --shift -1 -2'
pair 'pretrain_gpt.py model.hidden_dropout=0.1 +seed=1' 'pretrain_gpt.py model.hidden_dropout=0.2 +seed=2'
pair 'a/pretrain_gpt.py --seed 1' 'b/pretrain_gpt.py --seed 1'
pair 'pretrain_gpt.py --seed 1' 'pretrain_t5.py --seed 1'
pair 'pretrain.py a.yaml --seed 1' 'pretrain.py b.yaml --seed 1'
pair 'pretrain.py --seed 1 -- --bf16' 'pretrain.py --seed 1'
