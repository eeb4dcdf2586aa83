#!/bin/sh
# Runs the Python script that was used before gradcmp beside it, on the same pair.
#
#   tests/bench/peer.sh SCRIPT BASELINE CANDIDATE
#
# SCRIPT compares the optimizer states of the torch_dist checkpoints that it is given, such as
# test_optimizer_grads_match.py of Megatron-LM (tests/functional_tests/python_test_utils). BASELINE
# and CANDIDATE are iteration directories. PYTHON names an interpreter that has torch; where it has
# none, torch is installed from PyPI into a virtual environment in $TMPDIR. GRADCMP names the program
# (default: gradcmp on the PATH). Both answers are printed, then the median ratio of 3 interleaved
# rounds by the clock, and each one's peak of memory.
set -eu
if [ $# -ne 3 ] || [ ! -f "$1" ] || [ ! -d "$2" ] || [ ! -d "$3" ]; then
    echo "usage: peer.sh SCRIPT BASELINE CANDIDATE (a file and two directories)" >&2
    exit 2
fi
python=${PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    environment=${TMPDIR:-/tmp}/gradcmp-peer
    [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
    python=$environment/bin/python
    "$python" -c 'import torch' 2>/dev/null || "$python" -m pip install --quiet torch numpy
fi
exec "$python" "$(dirname -- "$0")/peer.py" "${GRADCMP:-gradcmp}" "$@"
