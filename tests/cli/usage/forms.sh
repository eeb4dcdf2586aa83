# All ways of writing an option mean the same, and stand anywhere.
base=data/megatron/s_base good=data/megatron/tp2_perlayer
gradcmp --k=5 --max-bound=0.5 --top=3 -v $base $good >1.txt
gradcmp compare --k 5 --max-bound 0.5 --top 3 --verbose $base $good >2.txt
gradcmp $base --k 5 $good --max-bound 0.5 -v --top 3 >3.txt
gradcmp --k 5 --k 5 --max-bound 0.5 -v --top 3 -- $base $good >4.txt
gradcmp --buffers 65536KiB --threads 1 --k 5.0e0 --max-bound .5 --top 3 -v $base $good >5.txt
for n in 2 3 4 5; do cmp 1.txt $n.txt; done
sed -n '/^options/p' 1.txt
gradcmp -qv $base $good
gradcmp -q -- -q $good 2>&1 || echo "exit $?"
