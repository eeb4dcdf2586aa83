# --sandbox: the same answers with fewer rights, and a probe from within that finds them gone.
. "$TESTS_CLI/lib.sh"
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}" # looking for leaks at the end takes more rights
ln -s data/megatron/* .
# A kernel without Landlock, or a container that forbids it: one line, exit 2; the rest cannot be seen.
if ! gradcmp ls --sandbox s_base >ls.txt 2>&1 && grep -q '^gradcmp: sandbox: ' ls.txt; then
    [ "$(wc -l <ls.txt)" = 1 ]
    cat "$TESTS_CLI/contain/sandbox.stdout"
    exit 0
fi
same() { # SAYS-SANDBOX... : both ways, and what they print and return is the same
    command=$1
    shift
    code=0
    gradcmp "$command" "$@" >plain.txt 2>&1 || code=$?
    inside=0
    gradcmp "$command" --sandbox "$@" >inside.txt 2>&1 || inside=$?
    cmp plain.txt inside.txt
    echo "$command $*: exit $code and $inside"
}
same compare s_base tp2dp2
same compare --threads 4 s_base bug_double_layer1
same ls --stats data/zarr/zarr2_zstd
same ls --stats data/hdf5/bf16_custom.h5
same bits data/resume/run_a data/resume/run_b
same check tp2dp2
same metrics data/metrics/a data/metrics/ulp
same compare nosuch s_base
# Reports, and HDF5 by the helper, in a folder of their own.
mkdir out
try --sandbox --quiet --json out/r.json --html out/r.html s_base tp2dp2
try extract --sandbox --state exp_avg tp2dp2 -o out/x.h5
try --sandbox --quiet s_base out/x.h5
ls -A out
# What a plan names is read where it lies beside the plan or beneath DIR, and not elsewhere.
mkdir -p secret/s_base plans && cp -RL data/megatron/s_base data/megatron/tp2dp2 secret/
printf 'baseline: ../secret/s_base\ncandidates:\n  - ../secret/tp2dp2\n' >plans/plan.yaml
try sweep --sandbox --plan plans/plan.yaml
try sweep --sandbox --plan plans/plan.yaml secret | tail -n 3
try --sandbox --device cuda s_base tp2dp2
# From within: what a file that took over the program would try.
make_shim
shimmed SHIM_PROBE="$PWD/secret/s_base/latest_checkpointed_iteration.txt" gradcmp ls s_base 2>&1 >/dev/null | sort -u
shimmed SHIM_PROBE="$PWD/secret/s_base/latest_checkpointed_iteration.txt" gradcmp ls --sandbox s_base 2>&1 >/dev/null | sort -u
