# Each option that --help-all of a command lists is taken by that command, with a value of its kind,
# and the examples of all helps run as they stand. What an option does is tested elsewhere
# (tests/house/options.sh). Nothing is printed where all is well.
[ -z "${GRADCMP_SANITIZED-}" ] || exit 0 # 400 runs, of code that other cases run too
ln -s data/megatron/* .
d=data/previous
cat >launch.sh <<'SH'
export NCCL_ALGO=Ring CUBLAS_WORKSPACE_CONFIG=:4096:8 NVTE_ALLOW_NONDETERMINISTIC_ALGO=0
torchrun train.py --deterministic-mode --seed 1 --use-flash-attn
SH
mkdir -p runs/nightly traces_a traces_b steps
cp data/metrics/golden.json twin.json
cp $d/usual_step3.pt $d/wrong_step3.pt steps
cp -R data/megatron/s_base runs/nightly/tp1pp1
cp -R data/megatron/tp2dp2 runs/nightly/tp2
printf 'baseline: s_base\ncandidates: [tp2dp2]\n' >plan.yaml
printf 'rules:\n  - rename: (decoder.*)\n    to: \\1\n' >map.yaml
printf 'verbose: true\n' >config.yaml
gradcmp fit -q -o noise.yaml s_base tp2dp2 dr_dp2
for side in a b; do
    printf '%s\n' '{"schema_version":1,"seq":0,"rank":0,"iteration":1,"kind":"op","name":"op","payload":{"id":"op:1","scope":"layers.0","phase":"forward","microbatch":0,"in":[],"out":[{"shape":[2],"dtype":"float32","numel":2,"digest":"aaaaaaaaaaaaaaaa"}]}}' \
        >traces_$side/rank00000_iter000001.jsonl
done

# The words that stand for an option's value in what follows; an unknown option is none of them.
value_of() { # COMMAND OPTION
    case $2 in
    --state) echo exp_avg ;;
    --match) [ "$1" = metrics ] && echo loss || echo decoder ;;
    --exclude) echo nosuchname ;;
    --dtype) echo bf16 ;;
    --k) echo 4 ;;
    --C) echo 1.03 ;;
    --max-bound) echo 0.25 ;;
    --compat) echo megatron ;;
    --fit) echo noise.yaml ;;
    --vocab) echo 70 ;;
    --layers) echo 4 ;;
    --iteration) [ "$1" = bits ] && echo 2 || echo 1 ;;
    --as) echo float32 ;;
    --output) [ "$1" = fit ] && echo out.yaml || echo out.safetensors ;;
    --ignore) echo 'args.lr*' ;;
    --hash) echo hash.json ;;
    --plan) echo plan.yaml ;;
    --baseline) echo tp1pp1 ;;
    --resume) echo state ;;
    --golden) echo data/metrics/golden.json ;;
    --json) echo r.json ;;
    --html) echo r.html ;;
    --junit) echo r.xml ;;
    --junit-level) echo layer ;;
    --markdown) echo r.md ;;
    --hdf5) echo r.h5 ;;
    --annotations) echo github ;;
    --top) echo 3 ;;
    --color) echo always ;;
    --threads) echo 1 ;;
    --device) echo cpu ;;
    --buffers) echo 4MiB ;;
    --reads) echo threads ;;
    --format) echo safetensors ;;
    --map) echo map.yaml ;;
    --side) echo candidate ;;
    --previous-a | --previous-b) echo $d/usual_step2.pt ;;
    --mode) echo approx ;;
    --tolerance) echo 'lm-loss=0.1' ;;
    --max-ratio) echo 'iteration-time=2' ;;
    --rules) echo auto ;;
    --explain) echo MG01 ;;
    --memory-limit) echo 2GiB ;;
    --config) echo config.yaml ;;
    *) echo "no value of $2 is known here: add one to this case" >&2 ;;
    esac
}
operands_of() { # COMMAND OPTION
    case $1$2 in
    compare--previous-*) echo "$d/usual_step3.pt $d/wrong_step3.pt" ;;
    sweep--previous-*) echo "--baseline steps/usual_step3.pt steps" ;;
    compare--allow-same) echo "s_base s_base" ;;
    lint--pair) echo "launch.sh launch.sh" ;;
    lint--explain) ;;
    sweep--plan) ;;
    compare* | fit*) echo "s_base tp2dp2" ;;
    sweep*) echo runs/nightly ;;
    ls* | check*) echo tp2dp2 ;;
    extract--output) echo tp2dp2 ;;
    extract*) echo "tp2dp2 -o x.safetensors" ;;
    metrics*) echo "data/metrics/golden.json twin.json" ;;
    bits--hash) echo data/resume/a.pt ;;
    bits*) echo "data/resume/a.pt data/resume/same.pt" ;;
    lint*) echo launch.sh ;;
    trace*) echo "traces_a traces_b" ;;
    esac
}
# What a command needs beside an option that says nothing alone.
beside() { # COMMAND OPTION
    case $1$2 in
    *--junit-level) echo "--junit r.xml" ;;
    ls--as) echo "--stats" ;;
    *--side) echo "--map map.yaml" ;;
    metrics--tolerance) echo "--mode approx" ;;
    *--previous-a) echo "--previous-b $d/usual_step2.pt" ;;
    *--previous-b) echo "--previous-a $d/usual_step2.pt" ;;
    esac
}
commands=$(gradcmp --generate bash | sed -n 's/^        \([a-z]*\)) options=.*/\1/p')
for command in $commands; do
    gradcmp "$command" --help-all | grep -E '^  (   |-[a-zA-Z],) --' | sed 's/^ *\(-[a-zA-Z],\)* *//' >options
    while read -r option argument rest; do
        rm -f r.* out.* x.* hash.json state
        set --
        case $argument in
        [A-Z[]* | megatron | github | float32) set -- "$(value_of "$command" "$option")" ;;
        esac
        code=0
        # shellcheck disable=SC2046  # lists of words
        gradcmp "$command" $(beside "$command" "$option") "$option" "$@" $(operands_of "$command" "$option") \
            >out 2>errors </dev/null || code=$?
        [ $code -le 1 ] || { echo "$command $option $*: exit $code"; cat errors; }
    done <options
done

# The examples that end each help, on checkpoints of their names; a difference may be found.
mkdir -p ckpt scratch/run17 run1 run2 run unbroken resumed run18
ln -s "$DATA/megatron/s_base" ckpt/tp1
for name in tp2 tp4 new; do
    ln -s "$DATA/megatron/tp2dp2" ckpt/$name
done
ln -s "$DATA/megatron/tp2dp2" scratch/run17/checkpoints
ln -s "$DATA/metrics/golden.json" gold.json
ln -s "$DATA/metrics/a" run/tb
cp launch.sh run1
cp launch.sh run2
mkdir run17
mv traces_a run17/traces
mv traces_b run18/traces
ln -s "$DATA/resume/a.pt" unbroken/iter_0000200
ln -s "$DATA/resume/lr.pt" resumed/iter_0000200
for command in $commands; do
    gradcmp "$command" --help | sed -n '/^Example/,$s/^  gradcmp/gradcmp/p' | sed 's, /scratch/, scratch/,' >examples
    [ -s examples ] || echo "$command --help has no example"
    while read -r line; do
        rm -f report.json noise.yaml.old grads.safetensors
        [ "${line#*-o noise.yaml}" = "$line" ] || rm -f noise.yaml
        code=0
        sh -c "$line" >out 2>errors </dev/null || code=$?
        [ $code -le 1 ] || { echo "$line: exit $code"; cat errors; }
    done <examples
done
