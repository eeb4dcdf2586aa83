# --config: options from a file; the command line wins; mistakes are one line with the line's number.
. "$TESTS_CLI/lib.sh"
base=data/megatron/s_base good=data/megatron/tp2dp2
given() { # LINE...: what the file holds
    printf '%s\n' "$@" >options.yaml
}
settings() { # ARGUMENT...: the options that the report names
    code=0
    gradcmp --config options.yaml --json - "$@" "$base" "$good" >report.json || code=$?
    grep '^  "options"' report.json
    echo "(exit $code)"
}
given 'k: 3 # as a number' 'max-bound: 0.125' 'exclude: "^output"' 'buffers: 8MiB' 'strict: true' 'allow-same: no'
settings
settings --k 5 --exclude '^embedding'
try --config options.yaml --config other.yaml "$base" "$good"
given 'verify: true'
settings --no-verify

given 'k: 16' 'C: 1.5'
settings --compat megatron
gradcmp fit -q -o noise.yaml "$base" "$good" data/megatron/dr_dp2
settings --fit noise.yaml
given 'fit: noise.yaml'
settings --k 4
settings --compat megatron
settings
given 'compat: megatron'
settings --fit noise.yaml
settings --k 5

echo "# options of other commands are left out, a list is repeated"
given 'mode: approx' 'tolerance: ["lm loss=0.1", "grad-norm=0.2"]' 'quiet: true'
try --config options.yaml "$base" "$good"
given 'tolerance: [nonsense]' 'mode: approx'
try metrics --config options.yaml data/metrics/missing data/metrics/missing

echo "# an empty file, help"
given ''
try --config options.yaml --quiet "$base" "$good"
given 'quiet: true' 'k: 4'
try --config=options.yaml "$base" "$good"
gradcmp --config missing.yaml --help | sed -n 1p

echo "# mistakes"
refused() {
    given "$@"
    printf '%s; ' "$@"
    echo
    try --config options.yaml "$base" "$good"
}
refused 'strict: true' 'max_bound: 0.1'
refused 'frobnicate: 1'
refused 'k: 3' '' 'k: 4'
refused 'k: "4"'
refused 'k: four'
refused 'k: -1'
refused 'k: [1, 2]'
refused 'k:'
refused 'k: {a: 1}'
refused 'strict: 1'
refused 'color: blue'
refused 'match: yes'
refused 'vocab: 1.5'
refused 'tolerance: [1]'
refused 'tolerance: [[a]]'
refused 'verify: true' 'no-verify: true'
refused 'config: other.yaml'
refused 'help: true'
refused '- k' '- 4'
refused 'k: [4'
refused 'buffers: 12 potatoes'
try --config missing.yaml "$base" "$good"
try --config
