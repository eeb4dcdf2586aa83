gradcmp ls --json --stats data/megatron/tied_pp2 >1.json
gradcmp ls --json - --stats data/megatron/tied_pp2 >2.json
gradcmp ls --stats data/megatron/tied_pp2 --json >3.json
gradcmp ls --stats --json=4.json data/megatron/tied_pp2
for n in 2 3 4; do cmp 1.json $n.json; done
cat 1.json
