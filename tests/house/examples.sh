#!/bin/sh
# Run what the examples of CI jobs and the Megatron recipe say, on the shipped checkpoints.
#   examples.sh PROGRAM SOURCE_ROOT
set -eu
program=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$program" "$work/bin/gradcmp"
export PATH="$work/bin:$PATH"
cd "$work"

# commands FILE: the one gradcmp command of a job, also where it is folded over two lines.
commands() {
    sed -n '/^ *- *gradcmp /{s/^ *- *//p;q;}
        /^ *run: *>/{:more
        n
        /^ *\(gradcmp\|ckpt\)/{s/^ *//;p;b more
        }
        }' "$1" | tr '\n' ' '
}
# job FILE: the command fails exactly where the checkpoints differ, and leaves its reports.
job() {
    command=$(commands "$root/examples/ci/$1")
    case $command in
        gradcmp*ckpt/tp1*ckpt/tp2*) ;;
        *) echo "$1: no command found: $command"; exit 1 ;;
    esac
    for pair in tp2dp2:0 bug_double_layer1:1; do
        rm -rf ckpt gradcmp.*
        mkdir ckpt
        ln -s "$root/tests/data/megatron/s_base" ckpt/tp1
        ln -s "$root/tests/data/megatron/${pair%:*}" ckpt/tp2
        code=0
        eval "$command" >out 2>&1 || code=$?
        [ $code = "${pair#*:}" ] || { echo "$1: exit $code with ${pair%:*}"; cat out; exit 1; }
        for file in gradcmp.xml gradcmp.html gradcmp.json; do
            [ -s $file ] || { echo "$1: $file was not written"; exit 1; }
        done
    done
    echo "$1: works"
}
job github.yml
job gitlab.yml

# YAML as a parser sees it, and the places where the services look for commands.
for python in python3 /usr/bin/python3; do
    if $python -c 'import yaml' 2>/dev/null; then
        $python - "$root/examples/ci" <<'PY'
import sys, yaml
github = yaml.safe_load(open(sys.argv[1] + "/github.yml"))
runs = [step["run"] for step in github["jobs"]["gradients"]["steps"] if "run" in step]
assert sum(run.startswith("gradcmp ") for run in runs) == 1, runs
gitlab = yaml.safe_load(open(sys.argv[1] + "/gitlab.yml"))["gradients"]
assert sum(line.startswith("gradcmp ") for line in gitlab["script"]) == 1, gitlab
assert gitlab["artifacts"]["reports"]["junit"] == "gradcmp.xml"
PY
        echo "jobs: parsed"
        break
    fi
done

# The recipe, with runs that did what it says, and with one that did not.
mkdir out_good
for run in s_base:repeat_1_key_MODEL_ARGS s_base:repeat_2_key_MODEL_ARGS tp2dp2:repeat_1_key_MODEL_ARGS_2; do
    cp -R "$root/tests/data/megatron/${run%%:*}" "out_good/${run#*:}"
done
gradcmp sweep --plan "$root/examples/megatron/model_config.yaml" out_good >report ||
    { cat report; echo "the recipe does not pass"; exit 1; }
grep -q "2_key_MODEL_ARGS against .*identical" report || { cat report; echo "repeats were not compared"; exit 1; }
chmod -R u+w out_good
rm -rf out_good/repeat_1_key_MODEL_ARGS_2
cp -R "$root/tests/data/megatron/s_base" out_good/repeat_1_key_MODEL_ARGS_2
code=0
gradcmp sweep --plan "$root/examples/megatron/model_config.yaml" out_good >report 2>&1 || code=$?
[ $code = 1 ] || { cat report; echo "a run of another layout: exit $code"; exit 1; }
echo "recipe: works"
