#!/bin/bash
# Lets libFuzzer look for new inputs, one target after another, or as many at once as --jobs says:
#
#   run.sh [--seconds N] [--jobs N] [--merge] BUILD [TARGET...]
#
# BUILD was made with clang and -DGRADCMP_FUZZ=ON (the CMake preset "fuzz"). New inputs are kept in
# BUILD/found/TARGET and go on from there the next time; what fails is kept in BUILD/artifacts, and
# the exit code is 1. One line for each target tells executions, edges and features reached.
# --merge does not look for anything: of the corpus and what was found it keeps, in the corpus, a
# small set that reaches the same edges.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
fuzz=$PWD
cd "$OLDPWD" || exit 1
seconds=10 jobs=1 merge=false
while [[ ${1-} == --* ]]; do
    case $1 in
    --seconds) seconds=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --merge) merge=true ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
    esac
    shift
done
[ $# -gt 0 ] || { echo "run.sh: the build folder is missing"; exit 2; }
build=$(cd "$1" && pwd) || exit 2
shift

# Which of dictionaries/*.dict speak of what a target reads.
dictionaries_of() { # TARGET
    case $1 in
    pickle) echo pickle torch dcp deepspeed megatron ;;
    torch_file | objects) echo pickle torch zip ;;
    dcp_metadata) echo pickle dcp torch zip ;;
    deepspeed) echo pickle torch deepspeed zip ;;
    megatron_legacy) echo pickle torch megatron ;;
    safetensors | zarr | trace) echo "json $1" ;;
    metric_text) echo json metrics ;;
    checkpoint) echo json pickle torch dcp deepspeed safetensors zarr ;;
    kept) echo json ;;
    metric_events) echo events ;;
    lint_text) echo json yaml lint ;;
    map) echo yaml map ;;
    zip | yaml | hdf5 | hdf5_newer | decode) echo "$1" ;;
    esac
}
make_dictionary() { # TARGET FILE
    local name
    for name in $(dictionaries_of "$1"); do
        cat "$fuzz/dictionaries/$name.dict"
    done >"$2"
}

statistics_of() { # LOG
    sed -n 's/^stat::number_of_executed_units: *//p' "$1" | tail -n 1
    sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) .*/\1 edges, \2 features/p' "$1" | tail -n 1
}

look() { # TARGET
    local name=$1 log=$build/artifacts/$1.log words=() seeds
    mkdir -p "$build/found/$name" "$build/artifacts"
    make_dictionary "$name" "$build/artifacts/$name.dict"
    [ ! -s "$build/artifacts/$name.dict" ] || words=(-dict="$build/artifacts/$name.dict")
    seeds=("$build/found/$name")
    [ ! -d "$fuzz/corpus/$name" ] || seeds+=("$fuzz/corpus/$name")
    if "$build/tests/fuzz/libfuzzer_$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=1024 \
        -print_final_stats=1 "${words[@]}" -artifact_prefix="$build/artifacts/$name-" "${seeds[@]}" >"$log" 2>&1; then
        echo "fuzz $name: nothing found in $seconds s: $(statistics_of "$log" | paste -sd, | sed 's/,/ executions, /')"
    else
        tail -n 40 "$log"
        echo "fuzz $name: FAILED, input in $build/artifacts"
        return 1
    fi
}

# Edges alone decide, not how often each is taken: that would keep ten times as many inputs. What has
# a name that people gave is kept: it tells what was wrong once.
found=$(printf '[0-9a-f]%.0s' {1..40})
reduce() { # TARGET
    local name=$1 out=$build/merged/$1
    rm -rf "$out" && mkdir -p "$out" "$build/found/$name" "$build/artifacts"
    find "$fuzz/corpus/$name" -type f ! -name "$found" -exec cp {} "$out" \;
    "$build/tests/fuzz/libfuzzer_$name" -merge=1 -use_counters=0 -timeout=25 -rss_limit_mb=1024 \
        "$out" "$fuzz/corpus/$name" "$build/found/$name" >"$build/artifacts/$name.merge.log" 2>&1 || return 1
    [ -n "$(ls -A "$out")" ] || return 1
    rm -rf "${fuzz:?}/corpus/$name" && cp -r "$out" "$fuzz/corpus/$name"
    echo "fuzz $name: $(find "$out" -type f | wc -l) inputs, $(cat "$out"/* | wc -c) bytes"
}

[ $# -gt 0 ] || for target in "$build"/tests/fuzz/libfuzzer_*; do
    [ ! -f "$target" ] || set -- "$@" "${target##*/libfuzzer_}"
done
[ $# -gt 0 ] || { echo "no fuzz target was built"; exit 1; }
one() { # TARGET
    if ! $merge; then
        look "$1"
    elif ! reduce "$1"; then
        echo "fuzz $1: NOT MERGED"
        return 1
    fi
}
code=0 running=0
one_ends() {
    wait -n || code=1
    running=$((running - 1))
}
for name in "$@"; do
    [ "$running" -lt "$jobs" ] || one_ends
    one "$name" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do one_ends; done
exit $code
