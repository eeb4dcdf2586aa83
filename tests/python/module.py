"""Use the installed module on the shipped checkpoints.

    module.py TEST_DATA WORK_FOLDER
"""

import array
import json
import math
import shutil
import struct
import sys
import threading
from pathlib import Path

import gradcmp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import safetensors_file

DATA, WORK = Path(sys.argv[1]), Path(sys.argv[2])
MEGATRON = DATA / "megatron"
BASE, GOOD, BAD = MEGATRON / "s_base", MEGATRON / "tp2dp2", MEGATRON / "bug_double_layer1"
TRUTH = json.loads((MEGATRON / "truth.json").read_text())


def raises(kind, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        return error
    raise AssertionError(f"{function.__name__} raised nothing, expected {kind.__name__}")


def norm(values):
    return math.sqrt(math.fsum(float(value) ** 2 for value in flatten(values)))


def flatten(values):
    if isinstance(values, memoryview):
        values = values.tolist()
    elif hasattr(values, "ravel"):
        return values.ravel().tolist()
    stack, out = [values], []
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def test_compare():
    good, bad = gradcmp.compare(BASE, GOOD), gradcmp.compare(str(BASE), str(BAD))
    assert good.verdict == "consistent" and good and good.exit_status == 0 and good.onset is None
    assert bad.verdict == "inconsistent" and not bad and bad.exit_status == 1 and bad.onset == 2
    failing = {p.name for p in bad.parameters if p.verdict == "fail"}
    assert len(bad.parameters) == 27 and len(failing) == 6
    assert all(name.startswith("decoder.layers.1.") for name in failing)
    worst = max(bad.parameters, key=lambda p: p.ratio)
    assert 0.9 < worst.rel < 1.1 and worst.shape and worst.ratio > 25
    assert "INCONSISTENT" in bad.text() and bad.json()["schema"] == 1
    assert bad.json()["candidates"][0]["verdict"] == "inconsistent"


def test_compare_all():
    report = gradcmp.compare_all(BASE, [GOOD, BAD, WORK / "missing"])
    assert [one.verdict for one in report] == ["consistent", "inconsistent", "error"]
    assert report.exit_status == 2 and not report
    assert isinstance(report[2].error, gradcmp.Error) and "missing" in str(report[2].error)
    assert report[-1].verdict == "error"
    raises(IndexError, lambda: report[3])
    one = report[1]
    del report  # a comparison keeps what it belongs to
    assert one.verdict == "inconsistent"


def test_options():
    assert gradcmp.compare(BASE, GOOD, k=1e-6).verdict == "inconsistent"
    assert len(gradcmp.compare(BASE, GOOD, match="linear_fc1").parameters) < 27
    assert gradcmp.compare(BASE, GOOD, dtype="bf16", threads=1, strict=False, device="cpu")
    assert "did you mean threads" in str(raises(TypeError, gradcmp.compare, BASE, GOOD, treads=2))
    raises(TypeError, gradcmp.compare, BASE, GOOD, threads=1.5)
    raises(ValueError, gradcmp.compare, BASE, GOOD, threads=-1)
    raises(ValueError, gradcmp.compare, BASE, GOOD, dtype="int9")
    raises(ValueError, gradcmp.compare, BASE, GOOD, device="tpu")
    raises(ValueError, gradcmp.compare, BASE, "a\0b")
    same = gradcmp.compare(BASE, BASE)
    assert same.verdict == "error" and same.error.code == 10 and not same
    assert gradcmp.compare(BASE, BASE, allow_same=True)
    assert raises(gradcmp.Error, gradcmp.compare, WORK / "missing", GOOD).path.endswith("missing")


def test_progress():
    seen = []
    assert gradcmp.compare(BASE, GOOD, progress=lambda done, total: seen.append((done, total)))
    assert seen and all(done <= total for done, total in seen)
    raises(gradcmp.Cancelled, gradcmp.compare, BASE, GOOD, progress=lambda done, total: True)

    def interrupted(done, total):
        raise KeyboardInterrupt

    raises(KeyboardInterrupt, gradcmp.compare, BASE, GOOD, progress=interrupted)


def test_assertion():
    assert gradcmp.assert_checkpoints_close(BASE, GOOD) is None
    message = str(raises(AssertionError, gradcmp.assert_checkpoints_close, BASE, BAD, top=2))
    lines = message.split("\n")
    assert lines[0] == "checkpoints are not close: inconsistent, from layer 2 on"
    assert lines[1].endswith("s_base") and lines[2].endswith("bug_double_layer1")
    assert "decoder.layers.1." in lines[3] and "and 4 more" in lines[5]
    assert "INCONSISTENT" in lines[-1]
    assert "missing" in str(raises(AssertionError, gradcmp.assert_checkpoints_close, BASE,
                                   WORK / "missing"))
    # Nothing was judged: no pass.
    raises((AssertionError, gradcmp.Error), gradcmp.assert_checkpoints_close, BASE, GOOD,
           match="no_such_parameter")


def test_tensors():
    with gradcmp.open(BASE) as checkpoint:
        assert checkpoint.state == "exp_avg" and len(checkpoint) == 27
        for name in checkpoint:
            tensor, truth = checkpoint[name], TRUTH["s_base"]["parameters"][name]
            shape = list(tensor.shape)
            assert shape == list(checkpoint.info(name).shape), name
            if "word_embeddings" in name or "output_layer" in name:
                shape[0] = min(shape[0], truth["shape"][0])  # padding rows of the vocabulary
            assert shape == truth["shape"], name
            assert abs(norm(tensor) / truth["norm"] - 1) < 1e-6, name
        weights = checkpoint[name, "param"]
        assert weights.shape == tensor.shape
        raises(KeyError, lambda: checkpoint["no such"])
        assert "no such" not in checkpoint and name in checkpoint
    raises(ValueError, lambda: checkpoint[name])
    raises(KeyError, gradcmp.open, BASE, state="momentum")
    raises(gradcmp.Error, gradcmp.open, WORK / "missing")
    raises(ValueError, gradcmp.open, BASE, bfloat16="int8")


def test_bfloat16():
    path = MEGATRON / "tp2_bf16_exp_avg"
    wide, raw = gradcmp.open(path), gradcmp.open(path, bfloat16="uint16")
    for name in list(wide)[:5]:
        assert wide.info(name).dtype == "bfloat16"
        halves = flatten(raw[name])
        widened = array.array("f", struct.pack(f"={len(halves)}I", *(h << 16 for h in halves)))
        assert flatten(wide[name]) == widened.tolist(), name


def test_types():
    """Other types, an empty tensor, and one without axes."""
    path = WORK / "types.safetensors"
    safetensors_file.write(path, {
        "f64": ("F64", [2], struct.pack("<2d", 1.5, -2)),
        "f16": ("F16", [2, 1], struct.pack("<2e", 0.5, -4)),
        "scalar": ("F32", [], struct.pack("<f", 7)),
        "empty": ("F32", [0, 3], b""),
    })
    with gradcmp.open(path) as checkpoint:
        state = checkpoint.state
        found = {name: flatten(checkpoint[name, state]) for name in checkpoint}
    assert found["f64"] == [1.5, -2] and found["f16"] == [0.5, -4]
    assert found["scalar"] in ([7.0], 7.0) and found["empty"] == [], found


def test_evidence():
    a, b = WORK / "a.json", WORK / "b.json"
    golden = {"lm loss": {"start_step": 1, "end_step": 3, "step_interval": 1,
                          "values": {"1": 10.5, "2": 10.25, "3": 10.0}}}
    a.write_text(json.dumps(golden))
    golden["lm loss"]["values"]["2"] = 10.75
    b.write_text(json.dumps(golden))
    same, other = gradcmp.metrics(a, a), gradcmp.metrics(a, b)
    assert same and same.exit_status == 0, same.text()
    assert not other and other.exit_status == 1, other.text()
    assert any(case.outcome == "fail" and case.name == "lm loss" for case in other.cases)
    assert other.summary and other.json()["verdict"] == other.verdict
    assert gradcmp.metrics(a, b, approximate=True, tolerances=["lm loss=0.5"])
    identical = gradcmp.bits(BASE, BASE)
    assert identical.verdict == "identical" and identical
    assert not gradcmp.bits(BASE, BAD)
    raises(TypeError, gradcmp.bits, BASE, GOOD, ignore="args")  # not of a, r, g and s
    assert gradcmp.check(BASE).exit_status == 0


def test_fit_and_sweep():
    fitted = gradcmp.fit(BASE, [GOOD, MEGATRON / "fr_pp2dp2"])
    (WORK / "noise.yaml").write_text(fitted.yaml())
    assert gradcmp.compare(BASE, GOOD, fit=WORK / "noise.yaml")
    runs = WORK / "runs"
    runs.mkdir()
    for name in ("s_base", "tp2dp2", "bug_double_layer1"):
        (runs / name).symlink_to(MEGATRON / name)
    swept = gradcmp.sweep(MEGATRON, baseline="s_base", match="^decoder")
    rows = swept.comparisons
    assert len(rows) > 5 and {"consistent", "inconsistent"} <= {row.verdict for row in rows.values()}
    assert not swept and "bug_double_layer1" in " ".join(rows)


def test_documents():
    """Every report, as text and as a file that is there whole or not at all."""
    result = gradcmp.compare(BASE, BAD)
    folder = WORK / "documents"
    folder.mkdir()
    result.write_html(folder / "report.html")
    result.write_junit(folder / "report.xml", level="layer")
    result.write_markdown(folder / "comment.md")
    result.write_json(folder / "report.json")
    result.write_text(folder / "report.txt")
    assert (folder / "report.html").read_text() == result.report.html()
    assert "<!DOCTYPE html>" in result.report.html() and "<testsuites" in (folder / "report.xml").read_text()
    assert result.report.junit("candidate") != result.report.junit() != (folder / "report.xml").read_text()
    assert "INCONSISTENT" in (folder / "report.txt").read_text()
    assert json.loads((folder / "report.json").read_text())["verdict"] == "inconsistent"
    assert "::error" in result.report.annotations() and "**inconsistent**" in (folder / "comment.md").read_text()
    assert "gradcmp check" in gradcmp.check(BASE).html() and "gradcmp bits" in gradcmp.bits(BASE, GOOD).markdown()
    try:
        result.write_hdf5(folder / "report.h5")
        assert (folder / "report.h5").read_bytes()[:4] == b"\x89HDF"
    except gradcmp.Error as error:  # where the helper was not built
        assert "gradcmp-h5" in str(error)
    for bad in (lambda: result.report.junit("layers"), lambda: result.write_html(WORK / "none" / "x")):
        try:
            bad()
        except (ValueError, OSError):
            continue
        raise AssertionError("no error")
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_resume():
    for path in (BASE, GOOD, BAD):
        shutil.copytree(path, WORK / "again" / path.name)
    swept = gradcmp.sweep(WORK / "again", resume=WORK / "state")
    again = gradcmp.sweep(WORK / "again", resume=WORK / "state")
    rows = again.json()["candidates"]
    assert rows and all(row["taken_over"] for row in rows)
    assert not any(row["taken_over"] for row in swept.json()["candidates"])
    again.write_html(WORK / "sweep.html")
    assert "taken over" in (WORK / "sweep.html").read_text()


def test_threads():
    """Several comparisons at once; each gets its own answer."""
    found = {}

    def work(i):
        found[i] = gradcmp.compare(BASE, BAD if i % 2 else GOOD, threads=2).verdict

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(8)] == ["consistent", "inconsistent"] * 4


def test_close_while_reading():
    """Closing waits for a read in another thread: what that one uses must not be released."""
    module = sys.modules["gradcmp._checkpoint"]
    read, checkpoint, held = module.run, gradcmp.open(BASE), []
    closer = threading.Thread(target=checkpoint.close)

    def slow(*arguments, **options):
        closer.start()
        closer.join(0.1)  # it waits; if it did not, it would be done
        held.append(closer.is_alive())
        read(*arguments, **options)

    module.run = slow
    try:
        tensor = checkpoint[next(iter(checkpoint))]
    finally:
        module.run = read
    closer.join()
    assert held == [True] and len(flatten(tensor)) > 0
    raises(ValueError, lambda: checkpoint[next(iter(checkpoint))])
    raises(ValueError, checkpoint.__enter__)


def main():
    tests = [function for name, function in sorted(globals().items()) if name.startswith("test_")]
    assert gradcmp.__version__.count(".") == 2 and any("torch_dist" in f for f in gradcmp.features())
    for test in tests:
        test()
    print(f"module: {len(tests)} tests passed, numpy {'is' if 'numpy' in sys.modules else 'is not'} there")


main()
