# What decides what is computed spoils a pair; what is not known leaves a doubt that is told.
. "$TESTS_CLI/lib.sh"
launch='torchrun pretrain_gpt.py --deterministic-mode --seed 1 --num-layers 4'
echo "$launch" >a.sh
for option in --qk-layernorm '--window-size 128' '--moe-router-score-function sigmoid' '--loss-scale 128' '--log-interval 5'; do
    echo "$launch $option" >b.sh
    try lint --pair a.sh b.sh
done
