#!/bin/sh
# Build the wheel from this build tree, install it into a fresh virtual environment, and use it as a
# stranger would. Without venv, pip or objdump the test says so and is skipped (exit 77).
#   python.sh BUILD_DIR SOURCE_ROOT PYTHON C_COMPILER
set -eu
build=$1 root=$2 python=$3 cc=$4
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    echo "skipped: $python has no venv with pip"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH GRADCMP_LIBRARY
export PYTHONDONTWRITEBYTECODE=1

mkdir "$work/dist"
wheel=$("$python" "$root/src/python/backend.py" --build-dir "$build" "$work/dist")
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-index --no-deps "$work/dist/$wheel"
export PATH="$work/venv/bin:$PATH"
cd "$root/tests/data/megatron"

# The program of the wheel, and its manual.
[ "$(command -v gradcmp)" = "$work/venv/bin/gradcmp" ] || { echo "no program in the environment"; exit 1; }
gradcmp --quiet s_base tp2dp2
code=0
gradcmp --quiet s_base bug_double_layer1 || code=$?
[ $code = 1 ] || { echo "the program: exit $code on a bad pair"; exit 1; }
[ -s "$work/venv/share/man/man1/gradcmp.1" ] || { echo "no manual page"; exit 1; }

# What ctypes believes of every struct is what the compiler says.
python "$root/tests/python/layout.py" "$root/include" "$cc" "$work"
# The module.
python -W error "$root/tests/python/module.py" "$root/tests/data" "$work"
# The examples, without pytest too.
python -W error "$root/examples/pytest/test_gradients.py" s_base tp2dp2
code=0
python -W error "$root/examples/pytest/test_gradients.py" s_base bug_double_layer1 >"$work/out" 2>&1 || code=$?
if [ $code != 1 ] || ! grep -q "not close: inconsistent, from layer 2 on" "$work/out"; then
    cat "$work/out"
    echo "examples/pytest: exit $code on a bad pair"
    exit 1
fi
if "$python" -c 'import pytest' 2>/dev/null; then
    PYTHONPATH=$("$python" -c 'import pytest, os; print(os.path.dirname(os.path.dirname(pytest.__file__)))')
    export PYTHONPATH
    pytest() { # CODE BASELINE CANDIDATES
        expected=$1 code=0
        GRADCMP_BASELINE=$2 GRADCMP_CANDIDATES=$3 python -m pytest -q -p no:cacheprovider "$root/examples/pytest" \
            >"$work/out" 2>&1 || code=$?
        [ $code = "$expected" ] || { cat "$work/out"; echo "pytest: exit $code with candidates \"$3\""; exit 1; }
    }
    pytest 0 s_base tp2dp2:fr_pp2dp2
    grep -q '^2 passed' "$work/out"
    # A failure names layer, parameter and cause, and shows nothing of the module's inside.
    pytest 1 s_base tp2dp2:bug_double_layer1:missing
    for text in '2 failed, 1 passed' 'AssertionError: checkpoints are not close: inconsistent, from layer 2 on$' \
        'fail      decoder.layers.1.self_attention.linear_proj.weight: error 1.002, 29.3 times the bound' \
        '- scale: 6 parameters of layer 2: twice the baseline' 'not close: error: missing: no such file or directory$'; do
        grep -q -- "$text" "$work/out" || { cat "$work/out"; echo "pytest: no line \"$text\""; exit 1; }
    done
    ! grep -q 'gradcmp/__init__.py' "$work/out" || { cat "$work/out"; echo "pytest shows the module's inside"; exit 1; }
    # Nothing to compare is no success.
    pytest 2 s_base ''
    pytest 2 '' tp2dp2
    unset PYTHONPATH
    echo "pytest: ran the example"
else
    echo "pytest is not installed: its example was run as a program"
fi
# Type hints, where mypy is installed: strictly, without looking at numpy.
if "$python" -c 'import mypy' 2>/dev/null; then
    "$python" -m mypy --strict --cache-dir "$work/mypy" "$("$work/venv/bin/python" -c 'import gradcmp, os; print(os.path.dirname(gradcmp.__file__))')"
else
    echo "mypy is not installed: type hints were not checked"
fi
