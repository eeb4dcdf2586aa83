"""Are the gradients of every layout those of the baseline? A test for pytest, one case a layout.

    GRADCMP_BASELINE=ckpt/tp1 GRADCMP_CANDIDATES=ckpt/tp2:ckpt/pp2 pytest examples/pytest

or without pytest: python test_gradients.py BASELINE CANDIDATE...
"""

import os
import sys

import gradcmp


def pytest_cases():
    """The candidates. Nothing to compare is an error: pytest would skip the test, and be content."""
    cases = [path for path in os.environ.get("GRADCMP_CANDIDATES", "").split(":") if path]
    if not cases or not os.environ.get("GRADCMP_BASELINE"):
        raise LookupError("set GRADCMP_BASELINE to a checkpoint, GRADCMP_CANDIDATES to others, parted by colons")
    return cases


def pytest_generate_tests(metafunc):
    if "candidate" in metafunc.fixturenames:
        metafunc.parametrize("candidate", pytest_cases())


def test_gradients(candidate):
    gradcmp.assert_checkpoints_close(os.environ["GRADCMP_BASELINE"], candidate)


if __name__ == "__main__":
    os.environ["GRADCMP_BASELINE"] = sys.argv[1]
    for path in sys.argv[2:]:
        test_gradients(path)
