"""Compare gradients in checkpoints of one training step, offline.

    import gradcmp
    result = gradcmp.compare("ckpt/tp1", "ckpt/tp4")
    print(result.verdict, result.onset)
    gradcmp.assert_checkpoints_close("ckpt/tp1", "ckpt/tp4")        # in a test
    weights = gradcmp.open("ckpt/tp4")["embedding.word_embeddings.weight"]

Options are keywords, named as the fields of the C structs (gradcmp.h says what each does):
state, match, exclude, dtype ("bf16"), k, C, max_bound, threads, device ("cuda:0"), map, fit, ...
progress is a function of the bytes done and the bytes in all; it cancels by returning True.
"""

import ctypes
import math
from typing import Any, Iterable, List, Optional

from . import _abi
from ._checkpoint import Checkpoint, Tensor, open
from ._library import Cancelled, Error, Options, StrPath, encode, library, run, string_array, text
from ._results import (Case, Comparison, Evidence, Findings, Fit, Parameter, Report, Sweep)

__version__ = text(library.gradcmp_version())
__all__ = [
    "Cancelled", "Case", "Checkpoint", "Comparison", "Error", "Evidence", "Findings", "Fit",
    "Parameter", "Report", "Sweep", "Tensor", "assert_checkpoints_close", "bits", "check",
    "compare", "compare_all", "fit", "lint", "metrics", "open", "sweep", "trace",
]


def compare_all(baseline: StrPath, candidates: Iterable[StrPath], **options: Any) -> Report:
    """Compare every candidate with the baseline, which is read once. One that cannot be read has
    the verdict "error"; a baseline that cannot be read raises Error."""
    paths = string_array(candidates)
    settings = Options(_abi.gradcmp_options, options)
    handle = ctypes.c_void_p()
    try:
        run("gradcmp_compare", encode(baseline), paths, len(paths), ctypes.byref(settings.value),
            ctypes.byref(handle), options=settings)
    except BaseException:
        library.gradcmp_report_free(handle)  # what was finished when it was cancelled
        raise
    return Report(handle)


def compare(baseline: StrPath, candidate: StrPath, **options: Any) -> Comparison:
    """Compare a candidate with a baseline."""
    return compare_all(baseline, [candidate], **options)[0]


def _describe(parameter: Parameter) -> str:
    if math.isnan(parameter.ratio):
        return f"  {parameter.verdict:9} {parameter.name}"
    return (f"  {parameter.verdict:9} {parameter.name}: error {parameter.rel:.4g}, "
            f"{parameter.ratio:.3g} times the bound {parameter.bound:.3g}")


def assert_checkpoints_close(baseline: StrPath, candidate: StrPath, *, top: int = 5,
                             **options: Any) -> None:
    """Raise AssertionError unless the gradients agree up to rounding. What cannot be judged fails
    too. The message names the first layer, the `top` worst parameters, and the whole report."""
    __tracebackhide__ = True  # pytest shows the caller's line
    result = compare(baseline, candidate, **options)
    if result.verdict == "consistent":
        return
    lines = [f"checkpoints are not close: {result.verdict}"]
    if result.error is not None:
        lines[0] += f": {result.error}"
    if result.onset is not None:
        lines[0] += f", from layer {result.onset} on"
    bad = [p for p in result.parameters if p.verdict not in ("pass", "unjudged")]
    bad.sort(key=lambda p: -p.ratio if not math.isnan(p.ratio) else -math.inf)
    lines += [f"  baseline  {baseline}", f"  candidate {candidate}"]
    lines += [_describe(parameter) for parameter in bad[:top]]
    if len(bad) > top:
        lines.append(f"  and {len(bad) - top} more")
    if result.error is None:
        lines += ["", result.text(top=top).rstrip()]
    raise AssertionError("\n".join(lines))


def check(*checkpoints: StrPath, **options: Any) -> Findings:
    """Look at each checkpoint alone: copies that disagree, NaN, weights that are not their masters."""
    paths = string_array(checkpoints)
    settings = Options(_abi.gradcmp_options, options)
    handle = ctypes.c_void_p()
    run("gradcmp_check", paths, len(paths), ctypes.byref(settings.value), ctypes.byref(handle),
        options=settings)
    return Findings(handle)


def fit(baseline: StrPath, goods: Iterable[StrPath], **options: Any) -> Fit:
    """Measure the rounding noise of known-good runs."""
    paths = string_array(goods)
    settings = Options(_abi.gradcmp_options, options)
    handle = ctypes.c_void_p()
    run("gradcmp_fit_make", encode(baseline), paths, len(paths), ctypes.byref(settings.value),
        ctypes.byref(handle), options=settings)
    return Fit(handle)


def _options_struct(name: str) -> Any:
    struct = getattr(_abi, name, None)
    if struct is None:
        raise Error(f"this version of the library has no {name}")
    return struct


def metrics(a: StrPath, b: StrPath, **options: Any) -> Evidence:
    """Find the first step at which the metrics of two runs differ. Options: approximate, match,
    exclude, tolerances (["lm loss=0.01"]), max_ratios."""
    settings = Options(_abi.gradcmp_metrics_options, options)
    handle = ctypes.c_void_p()
    run("gradcmp_metrics", encode(a), encode(b), ctypes.byref(settings.value), ctypes.byref(handle))
    return Evidence(handle)


def lint(*paths: StrPath, **options: Any) -> Evidence:
    """Look at the determinism settings of one run, or of two (pair=True). Options: rules, strict."""
    settings = Options(_options_struct("gradcmp_lint_options"), options)
    handle = ctypes.c_void_p()
    array = string_array(paths)
    run("gradcmp_lint", array, len(array), ctypes.byref(settings.value), ctypes.byref(handle))
    return Evidence(handle)


def bits(*checkpoints: StrPath, ignore: Iterable[str] = (), no_default_ignore: bool = False,
         hash: Optional[StrPath] = None, **options: Any) -> Evidence:
    """Compare everything that a resume restores, bit for bit: the first with each other one."""
    own = Options(_options_struct("gradcmp_bits_options"),
                  {"ignore": ignore, "no_default_ignore": no_default_ignore, "hash": hash})
    settings = Options(_abi.gradcmp_options, options)
    handle = ctypes.c_void_p()
    array = string_array(checkpoints)
    run("gradcmp_bits", array, len(array), ctypes.byref(settings.value), ctypes.byref(own.value),
        ctypes.byref(handle), options=settings)
    return Evidence(handle)


def trace(a: StrPath, b: StrPath, **options: Any) -> Evidence:
    """Find the first operation whose outputs differ in two traces."""
    settings = Options(_options_struct("gradcmp_trace_options"), options)
    handle = ctypes.c_void_p()
    run("gradcmp_trace", encode(a), encode(b), ctypes.byref(settings.value), ctypes.byref(handle))
    return Evidence(handle)


def sweep(folder: Optional[StrPath] = None, *, plan: Optional[StrPath] = None,
          baseline: Optional[StrPath] = None, resume: Optional[StrPath] = None,
          golden: Optional[StrPath] = None, **options: Any) -> Sweep:
    """Compare all checkpoints below a folder, or those of a plan, with one baseline. `resume` is a
    file that keeps what is judged, for the next call; `golden` holds golden values."""
    own = Options(_options_struct("gradcmp_sweep_options"),
                  {"plan": plan, "baseline": baseline, "resume": resume, "golden": golden})
    settings = Options(_abi.gradcmp_options, options)
    handle = ctypes.c_void_p()
    try:
        run("gradcmp_sweep_run", None if folder is None else encode(folder),
            ctypes.byref(own.value), ctypes.byref(settings.value), ctypes.byref(handle),
            options=settings)
    except BaseException:
        library.gradcmp_sweep_free(handle)  # what was finished when it was cancelled
        raise
    return Sweep(handle)


def features() -> List[str]:
    """What this build can do: "format torch_dist", "kernel avx2", "device cpu", ..."""
    found: List[str] = []
    kind = ctypes.c_char_p()
    while True:
        name = library.gradcmp_feature(len(found), ctypes.byref(kind))
        if name is None:
            return found
        found.append(f"{text(kind.value)} {text(name)}")
