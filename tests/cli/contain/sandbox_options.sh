# Every option that names a file or a path works under --sandbox as it does without, whether the file
# is there or not; what is written is the same, and nothing is left beside it.
. "$TESTS_CLI/lib.sh"
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}" # looking for leaks at the end takes more rights
ln -s data/megatron/* .
if ! gradcmp ls --sandbox s_base >ls.txt 2>&1 && grep -q '^gradcmp: sandbox: ' ls.txt; then
    cat "$TESTS_CLI/contain/sandbox_options.stdout" # see sandbox.sh
    exit 0
fi
d=data/previous
mkdir -p in/runs in/steps
cp $d/usual_step3.pt $d/wrong_step3.pt in/steps
cp -R data/megatron/s_base in/runs/tp1pp1
cp -R data/megatron/tp2dp2 in/runs/tp2
printf 'baseline: runs/tp1pp1\ncandidates: [runs/tp2]\n' >in/plan.yaml
printf 'rules:\n  - rename: (decoder.*)\n    to: \\1\n' >in/map.yaml
printf 'verbose: true\n' >in/config.yaml
gradcmp fit -q -o in/noise.yaml s_base tp2dp2 dr_dp2
cat >in/model_config.yaml <<'RECIPE'
MODEL_ARGS:
  --num-layers: 4
MODEL_ARGS_2:
  --num-layers: 4
RECIPE
mkdir -p recipe
cp -R data/megatron/s_base recipe/repeat_1_key_1
cp -R data/megatron/tp2dp2 recipe/repeat_1_key_2
mkdir golden && cp data/metrics/golden.json golden
gradcmp bits --hash in/hash.json data/resume/a.pt >/dev/null
gradcmp sweep --resume in/state in/runs >/dev/null
# The arguments for an option of a command; what it writes is in out.
arguments_of() { # COMMAND OPTION
    case "$1 $2" in
    *--config) echo "--config in/config.yaml" && plain "$1" ;;
    *--map) echo "--map in/map.yaml" && plain "$1" ;;
    *--fit) echo "--fit in/noise.yaml" && plain "$1" ;;
    *--json) echo "--json out/r.json" && plain "$1" ;;
    *--html) echo "--html out/r.html" && plain "$1" ;;
    *--junit) echo "--junit out/r.xml" && plain "$1" ;;
    *--markdown) echo "--markdown out/r.md" && plain "$1" ;;
    *--hdf5) echo "--hdf5 out/r.h5" && plain "$1" ;;
    "extract --output") echo "-o out/x.h5 tp2dp2" ;;
    "fit --output") echo "-o out/noise.yaml s_base tp2dp2" ;;
    "bits --ignore") echo "--ignore args.lr*" && plain bits ;;
    "bits --hash") echo "--hash out/hash.json data/resume/a.pt" ;;
    "sweep --plan") echo "--plan in/plan.yaml" ;;
    "sweep --baseline") echo "--baseline in/steps/wrong_step3.pt in/steps" ;;
    "sweep --resume") echo "--resume out/state in/runs" ;;
    "sweep --golden") echo "--golden golden/golden.json --plan in/model_config.yaml recipe" ;;
    "sweep --previous-"*)
        echo "--previous-a $d/usual_step2.pt --previous-b $d/usual_step2.pt" \
            "--baseline usual_step3.pt in/steps"
        ;;
    *--previous-*)
        echo "--previous-a $d/usual_step2.pt --previous-b $d/usual_step2.pt" \
            "in/steps/usual_step3.pt in/steps/wrong_step3.pt"
        ;;
    *) echo "nothing is known here of $1 $2: add it to this case" >&2 ;;
    esac
}
plain() { # COMMAND
    case $1 in
    compare | fit) echo "s_base tp2dp2" ;;
    sweep) echo in/runs ;;
    ls | check) echo tp2dp2 ;;
    extract) echo "tp2dp2 -o out/x.safetensors" ;;
    metrics) echo "data/metrics/a data/metrics/ulp" ;;
    bits) echo "data/resume/a.pt data/resume/same.pt" ;;
    lint) echo "in/launch.sh" ;;
    trace) echo "in/traces_a in/traces_b" ;;
    esac
}
mkdir in/traces_a in/traces_b
for side in a b; do
    printf '%s\n' '{"schema_version":1,"seq":0,"rank":0,"iteration":1,"kind":"op","name":"op","payload":{"id":"op:1","scope":"layers.0","phase":"forward","microbatch":0,"in":[],"out":[{"shape":[2],"dtype":"float32","numel":2,"digest":"aaaaaaaaaaaaaaaa"}]}}' \
        >in/traces_$side/rank00000_iter000001.jsonl
done
printf 'torchrun train.py --deterministic-mode --seed 1\n' >in/launch.sh
run() { # WORDS... : what is printed, and what is in out
    rm -rf out
    mkdir out
    [ -z "${kept-}" ] || cp "$kept" "out/${kept##*/}"
    code=0
    gradcmp "$@" >printed 2>&1 </dev/null || code=$?
    echo "exit $code" >>printed
    ls -A out >>printed
}
compared=0
compare() { # COMMAND ARGUMENTS...
    command=$1
    shift
    run "$command" "$@"
    mv printed printed.plain
    grep -q '^exit [01]$' printed.plain || { echo "$command $*:"; cat printed.plain; }
    run "$command" --sandbox "$@"
    sed 's/ --sandbox//' printed | diff printed.plain - || echo "in $command $*"
    compared=$((compared + 1))
}
for command in $(gradcmp --generate bash | sed -n 's/^        \([a-z]*\)) options=.*/\1/p'); do
    gradcmp "$command" --help-all | sed -n 's/^ *\(-[a-zA-Z],\)* *\(--[a-z0-9-]*\) \[*\(FILE\|PATH\|DIR\)\]*$/\2/p' >options
    while read -r option; do
        # shellcheck disable=SC2046  # lists of words
        compare "$command" $(arguments_of "$command" "$option")
    done <options
done
# What is there already is read, or replaced.
kept=in/state compare sweep --resume out/state in/runs
kept=in/hash.json compare bits --hash out/hash.json data/resume/a.pt
kept=in/state compare sweep --resume out/state --html out/r.html --json out/r.json in/runs
echo "compared $compared"
