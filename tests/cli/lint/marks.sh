. "$TESTS_CLI/lib.sh"
# The mark of UTF-8 at the start of a text is no part of its first setting.
marked() {
    printf '\357\273\277%s\n' "$2" >"$1"
    printf '$ gradcmp lint %s\n' "$1"
    code=0
    gradcmp lint --rules "$3" "$1" >out || code=$?
    printf '(exit %s)\n' "$code"
    grep -A1 -E "$4" out || true
    tail -1 out
}
marked one.env NVTE_ALLOW_NONDETERMINISTIC_ALGO=1 megatron NONDET
marked one.sh 'export NVTE_ALLOW_NONDETERMINISTIC_ALGO=1; torchrun x.py --seed 1' megatron NONDET
marked one.json '{"hidden_dropout": 0.1}' gradients 'hidden_dropout ='
marked one.yaml 'hidden_dropout: 0.1' gradients 'hidden_dropout ='
marked one.log '  hidden_dropout .......... 0.1' gradients 'hidden_dropout ='
marked two.env "PYTHONHASHSEED=0
$(cat one.env)" megatron NONDET
# Of many values the first are told, and how many there are.
for i in 0 1 2 3 4 5 6 7 8 9; do
    echo "NCCL_ALGO=v$i" >"rank$i.env"
done
{ gradcmp lint rank?.env || true; } | grep -A2 GN03
