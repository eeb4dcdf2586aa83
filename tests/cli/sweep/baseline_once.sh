# Twenty candidates and one reading of the baseline: the bytes read from its files are those of a
# comparison with one candidate, and the report says how many gradients' bytes that was.
. "$TESTS_CLI/lib.sh"
make_shim
mkdir runs
cp -R data/megatron/s_base runs/base
i=1
while [ $i -le 20 ]; do
    cp -R "data/megatron/tp2dp2" runs/candidate$i
    i=$((i + 1))
done
# Bytes read from the files of a run: count FOLDER ARGUMENT...
count() {
    what=$1
    shift
    shimmed SHIM_READS="/$what/" "$GRADCMP" "$@" 2>&1 >report | sed -n 's/^read from .*: \([0-9]*\) bytes$/\1/p'
}
baseline_of_one=$(count base compare --threads 1 runs/base runs/candidate1)
baseline_of_all=$(count base sweep --threads 1 --baseline base runs)
candidate_of_one=$(count candidate7 compare --threads 1 runs/base runs/candidate7)
candidate_of_all=$(count candidate7 sweep --threads 1 --baseline base runs)
sed -n '/^read/p; /^SWEEP/p' report
echo "$baseline_of_one $baseline_of_all" >figures
[ "$baseline_of_one" -gt 100000 ] || cat figures
[ "$candidate_of_one" -gt 100000 ] || echo "$candidate_of_one"
[ "$baseline_of_all" = "$baseline_of_one" ] && echo "the baseline is read as for one candidate"
[ "$candidate_of_all" = "$candidate_of_one" ] && echo "each candidate is read as if it were alone"
# In waves, which an interrupt can part, once for each four: as the report says.
kept=$(count base sweep --threads 1 --baseline base --resume state runs)
sed -n '/^read/p' report
# All readings of the gradients beside the one reading of metadata.
gradients=$(gradcmp sweep --baseline base --json - runs | sed -n 's/.*"baseline_bytes": \([0-9]*\).*/\1/p')
[ $((kept - baseline_of_all)) -ge $((4 * gradients)) ] || echo "five readings: $kept, one: $baseline_of_all"
