# JSON on standard output is alone there, the same for any number of threads and in every form.
cd data/megatron
out=$OLDPWD
gradcmp --json - s_base bug_double_layer1 >"$out/1.json" || [ $? -eq 1 ]
gradcmp --threads 2 --buffers 1MiB s_base bug_double_layer1 --json >"$out/2.json" || [ $? -eq 1 ]
gradcmp --json --quiet --threads 1 s_base bug_double_layer1 >"$out/3.json" || [ $? -eq 1 ]
gradcmp compare --json s_base bug_double_layer1 >"$out/4.json" || [ $? -eq 1 ] # a directory is no file
gradcmp --json="$out/5.json" --quiet s_base bug_double_layer1 || [ $? -eq 1 ]
gradcmp --json "$out/6.json" s_base bug_double_layer1 >"$out/text.txt" || [ $? -eq 1 ]
for reads in uring threads; do # the file system may refuse direct reads, and says so
    gradcmp --json --reads $reads --threads 3 s_base bug_double_layer1 >"$out/$reads.json" || [ $? -eq 1 ]
    gradcmp --json --reads $reads --direct s_base bug_double_layer1 >"$out/direct_$reads.json" 2>"$out/refused" || [ $? -eq 1 ]
done
cd "$out"
for n in 2 3 4 5 6 uring threads direct_uring direct_threads; do cmp 1.json $n.json; done
tail -n 1 text.txt
cat 1.json
