# Documents: all that stands in them counts, however deep it lies and whatever its form.
. "$TESTS_CLI/lib.sh"
verdict() { # FORM ONE [TWO]: the findings and the last line
    printf '%s\n' "$2" >one.$1
    set -- "$1" one.$1 ${3+"$3"}
    if [ $# = 3 ]; then
        printf '%s\n' "$3" >two.$1
        set -- "$1" --pair one.$1 two.$1
    fi
    shift
    echo "\$ gradcmp lint $*"
    { gradcmp lint "$@" || :; } | grep -E '^  (error|warning|info)|^- |^(PASS|WARN|FAIL|INVALID)'
    echo
}
# Lists.
verdict yaml 'seed: 1
data_path: [a, 0.5]' 'seed: 1
data_path: [a, 0.7]'
verdict yaml 'seed: 1
data_path: [a, {b: [true, ~]}]' 'seed: 1
data_path: ["a", {"b": [true, null]}]'
# Deep sections, and a name in two of them.
verdict json '{"a": {"b": {"c": {"d": {"e": {"hidden_dropout": 0.1}}}}}}' \
    '{"a": {"b": {"c": {"d": {"e": {"hidden_dropout": 0.2}}}}}}'
verdict json '{"a": {"seed": 1}, "b": {"seed": 2}}' '{"a": {"seed": 3}, "b": {"seed": 2}}'
verdict yaml 'a: {seed: 1}
b: {seed: 2}' 'a: {seed: 3}
b: {seed: 2}'
verdict json '{"deterministic_mode": true, "seed": 1, "a": {"b": {"c": {"d": {"e": {"tp_comm_overlap": true}}}}}}'
# Numbers as Python writes them.
verdict json '{"seed": 1, "a": NaN, "b": [-Infinity, "NaN \" Infinity"]}' \
    '{"seed": 1, "a": Infinity, "b": [-Infinity, "NaN \" Infinity"]}'
# Arguments beside an environment, and an environment deeper down.
verdict yaml 'env:
  NCCL_ALGO: Ring
training:
  seed: 1' 'env:
  NCCL_ALGO: Ring
training:
  seed: 2'
verdict yaml 'env:
  NCCL_ALGO: Ring
deterministic_mode: false
tp_comm_overlap: true'
verdict yaml 'run:
  env: {NCCL_ALGO: Tree}
deterministic_mode: true'
verdict json '{"run": {"env": {"NCCL_ALGO": "Tree"}}, "deterministic_mode": true}'
verdict json '{"model": {"env": {"seed": 1}}, "deterministic_mode": true}'
# Sections beside those of a test's configuration.
verdict yaml 'MODEL_ARGS: {--seed: 1}
TEST_TYPE: regular' 'MODEL_ARGS: {--seed: 1}
TEST_TYPE: resume'
verdict yaml 'MODEL_ARGS: {--seed: 1}
TEST_TYPE: regular' 'MODEL_ARGS: {--seed: 1}
TEST_TYPE: regular'
verdict yaml 'ENV_VARS: {NCCL_ALGO: Ring}
MODEL_ARGS: {--deterministic-mode: true}
TEST_TYPE: regular
other: {seed: 1}'
# Sections in another order, or more of them.
verdict json '{"data": {"seed": 42}, "rng": {"seed": 7}, "seed": 1}' \
    '{"seed": 1, "rng": {"seed": 7}, "data": {"seed": 42}}'
verdict yaml 'data: {seed: 42}
rng: {seed: 7}' 'rng: {seed: 7}
data: {seed: 42}'
verdict yaml 'data: {seed: 42}
rng: {seed: 7}' 'rng: {seed: 42}
data: {seed: 7}'
verdict json '{"model": {"name": "a"}, "data": {"name": "b"}, "seed": 1}' \
    '{"run": {"name": "c"}, "model": {"name": "a"}, "data": {"name": "b"}, "seed": 2}'
verdict json '{"model": {"seed": 1}}' '{"data": {"seed": 2}, "model": {"seed": 1}}'
verdict json '{"data": {"seed": 2}, "model": {"seed": 1}}' '{"model": {"seed": 3}}'
verdict json '{"a": {"seed": 2}, "b": {"seed": 1}}' '{"seed": 1}'
verdict json '{"a": {"seed": 2}, "seed": 1}' '{"seed": 3, "a": {"seed": 2}}'
# Each value in a mapping of its own, as Weights & Biases has it.
verdict yaml 'seed: {value: 1234}
lr: {desc: null, value: 0.1}
model: {value: {hidden_dropout: 0.1}}' 'seed: {value: 4321}
lr: {desc: null, value: 0.2}
model: {value: {hidden_dropout: 0.2}}'
verdict yaml 'seed: {value: 1234}' 'seed: 1234'
verdict json '{"seed": {"value": 1234}}' '{"seed": 1234}'
verdict json '{"model": {"desc": null, "value": {"hidden_dropout": 0.1}}}' \
    '{"model": {"desc": null, "value": {"hidden_dropout": 0.2}}}'
verdict json '{"loss": {"value": 1, "seed": 1}}' '{"loss": {"value": 1, "seed": 2}}'
verdict json '{"data": {"seed": 1}, "data.seed": 5, "seed": 2}' \
    '{"data": {"seed": 1}, "data.seed": 6, "seed": 2}'
verdict json '{"data": {"tp_comm_overlap": false}, "a": {"tp_comm_overlap": true}}' \
    '{"data": {"tp_comm_overlap": true}, "a": {"tp_comm_overlap": true}}'
