"""What the comparing functions return."""

import ctypes
import json
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _abi
from ._library import (Error, Options, StrPath, error_of, library, replace, replace_by, run, text,
                       text_options, written)


class Parameter(NamedTuple):
    """Figures of one parameter, as struct gradcmp_parameter_result; what does not exist is NaN."""

    name: str
    layer: int
    verdict: str
    shape: Tuple[int, ...]
    rel: float
    rel_common: float
    bound: float
    ratio: float
    eps_multiple: float
    alpha: float
    alpha_tolerance: float
    rho: float
    cosine: float
    norm_a: float
    norm_b: float
    max_abs: float


class Case(NamedTuple):
    """One thing that bits, trace, metrics or lint looked at."""

    group: str
    name: str
    outcome: str  # pass, fail, skipped, error
    text: Optional[str]
    file: Optional[str]
    line: Optional[int]


class Result:
    """A handle of the library that can be written as text or JSON."""

    _kind = ""

    def __init__(self, handle: Any):
        self._handle = handle
        self._free = weakref.finalize(self, getattr(library, f"gradcmp_{self._kind}_free"), handle)

    def text(self, verbose: bool = False, top: int = 20, width: int = 80) -> str:
        """The report for people."""
        return written(f"gradcmp_{self._kind}_write_text", self._handle,
                       text_options(verbose, top, width))

    def json(self) -> Dict[str, Any]:
        """The report for scripts, as gradcmp --json writes it."""
        document: Dict[str, Any] = json.loads(self.json_text())
        return document

    def json_text(self) -> str:
        return written(f"gradcmp_{self._kind}_write_json", self._handle)

    @property
    def exit_status(self) -> int:
        """What the program would end with: 0 good, 1 a difference, 2 trouble or undecided."""
        return int(getattr(library, f"gradcmp_{self._kind}_exit_status")(self._handle))

    def write_text(self, path: StrPath, verbose: bool = False, top: int = 20,
                   width: int = 80) -> None:
        """Write the report for people; like all writers, the file is there whole or not at all."""
        replace(path, self.text(verbose, top, width))

    def write_json(self, path: StrPath) -> None:
        replace(path, self.json_text())

    def __bool__(self) -> bool:
        """True where all is as it should be: exit_status 0."""
        return self.exit_status == 0


class Documents(Result):
    """A result that can be written as HTML, JUnit XML, Markdown and GitHub's annotations."""

    def _document(self, kind: str, level: str, top: int) -> str:
        levels = {"parameter": 0, "layer": 1, "candidate": 2}
        if level not in levels:
            raise ValueError(f"level: expected parameter, layer or candidate, found {level!r}")
        options = Options(_abi.gradcmp_document_options, {"junit_level": levels[level], "top": top})
        return written(f"gradcmp_{self._kind}_write_{kind}", self._handle,
                       ctypes.byref(options.value))

    def html(self, top: int = 0) -> str:
        """One page that needs nothing else; top: failures told in full (0: 50)."""
        return self._document("html", "parameter", top)

    def junit(self, level: str = "parameter") -> str:
        """JUnit XML: a test case a parameter, a layer, or a candidate."""
        return self._document("junit", level, 0)

    def markdown(self, top: int = 0) -> str:
        """A summary for the comment of a merge request."""
        return self._document("markdown", "parameter", top)

    def annotations(self, top: int = 0) -> str:
        """Lines that GitHub Actions shows beside the job."""
        return self._document("annotations", "parameter", top)

    def write_html(self, path: StrPath, top: int = 0) -> None:
        replace(path, self.html(top))

    def write_junit(self, path: StrPath, level: str = "parameter") -> None:
        replace(path, self.junit(level))

    def write_markdown(self, path: StrPath, top: int = 0) -> None:
        replace(path, self.markdown(top))


class Comparison:
    """A baseline and one candidate. True where they are consistent."""

    def __init__(self, report: "Report", index: int):
        self.report = report
        self._index = index

    @property
    def verdict(self) -> str:
        """consistent, inconsistent, undecided, vacuous or error."""
        outcome = library.gradcmp_report_outcome(self.report._handle, self._index)
        return text(library.gradcmp_outcome_name(outcome))

    @property
    def error(self) -> Optional[Error]:
        """Why the candidate could not be read."""
        details = library.gradcmp_report_error(self.report._handle, self._index)
        return error_of(details.contents) if details else None

    @property
    def onset(self) -> Optional[int]:
        """The layer from which on gradients differ, counted from the input; embeddings are 0."""
        layer = library.gradcmp_report_onset(self.report._handle, self._index)
        return None if layer < 0 else int(layer)

    @property
    def parameters(self) -> List[Parameter]:
        handle, found = self.report._handle, []
        for i in range(library.gradcmp_report_parameter_count(handle, self._index)):
            result = _abi.gradcmp_parameter_result()
            library.gradcmp_report_parameter(handle, self._index, i, ctypes.byref(result))
            figures = [getattr(result, name) for name in Parameter._fields[4:]]
            found.append(Parameter(text(result.name), result.layer,
                                   text(library.gradcmp_verdict_name(result.verdict)),
                                   tuple(result.shape[: result.ndim]), *figures))
        return found

    @property
    def exit_status(self) -> int:
        return {"consistent": 0, "inconsistent": 1}.get(self.verdict, 2)

    def __bool__(self) -> bool:
        return self.verdict == "consistent"

    def text(self, verbose: bool = False, top: int = 20, width: int = 80) -> str:
        """The report for people, with all candidates that were compared in the same call."""
        return self.report.text(verbose, top, width)

    def json(self) -> Dict[str, Any]:
        return self.report.json()

    def write_text(self, path: StrPath, verbose: bool = False, top: int = 20,
                   width: int = 80) -> None:
        self.report.write_text(path, verbose, top, width)

    def write_json(self, path: StrPath) -> None:
        self.report.write_json(path)

    def write_html(self, path: StrPath, top: int = 0) -> None:
        self.report.write_html(path, top)

    def write_junit(self, path: StrPath, level: str = "parameter") -> None:
        self.report.write_junit(path, level)

    def write_markdown(self, path: StrPath, top: int = 0) -> None:
        self.report.write_markdown(path, top)

    def write_hdf5(self, path: StrPath) -> None:
        self.report.write_hdf5(path)

    def __repr__(self) -> str:
        return f"<gradcmp.Comparison: {self.verdict}>"


class Report(Documents):
    """Several candidates against one baseline: a sequence of Comparison."""

    _kind = "report"

    def __len__(self) -> int:
        return int(library.gradcmp_report_candidate_count(self._handle))

    def __getitem__(self, index: int) -> Comparison:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return Comparison(self, index % len(self))

    def write_hdf5(self, path: StrPath) -> None:
        """Write all figures and heat maps as datasets."""
        replace_by(path, lambda descriptor: run("gradcmp_report_write_hdf5", self._handle,
                                                descriptor))


class Sweep(Result):
    """Many configurations against one baseline."""

    _kind = "sweep"

    @property
    def report(self) -> Report:
        """All comparisons; its documents are those of the sweep."""
        return _Borrowed(library.gradcmp_sweep_report(self._handle), self)

    def write_html(self, path: StrPath, top: int = 0) -> None:
        self.report.write_html(path, top)

    def write_junit(self, path: StrPath, level: str = "parameter") -> None:
        self.report.write_junit(path, level)

    def write_markdown(self, path: StrPath, top: int = 0) -> None:
        self.report.write_markdown(path, top)

    def write_hdf5(self, path: StrPath) -> None:
        self.report.write_hdf5(path)

    @property
    def comparisons(self) -> Dict[str, Comparison]:
        """Each configuration's comparison, by its label."""
        report = _Borrowed(library.gradcmp_sweep_report(self._handle), self)
        labels = [text(library.gradcmp_sweep_label(self._handle, i)) for i in range(len(report))]
        return {label: report[i] for i, label in enumerate(labels)}


class _Borrowed(Report):
    """A report that belongs to a sweep."""

    def __init__(self, handle: Any, owner: Any):
        self._handle, self._owner = handle, owner


class Fit(Result):
    """Rounding noise of known-good pairs."""

    _kind = "fit"

    def yaml(self) -> str:
        """The file that compare(fit=...) takes."""
        return written("gradcmp_fit_write_yaml", self._handle)

    def write_yaml(self, path: StrPath) -> None:
        replace(path, self.yaml())


class Findings(Documents):
    """What check found in checkpoints, each alone."""

    _kind = "findings"

    def __len__(self) -> int:
        return int(library.gradcmp_findings_count(self._handle))

    def __bool__(self) -> bool:
        return self.exit_status == 0


class Evidence(Documents):
    """What bits, trace, metrics or lint found. True where exit_status is 0."""

    _kind = "evidence"
    _outcomes = {_abi.GRADCMP_CASE_PASS: "pass", _abi.GRADCMP_CASE_FAIL: "fail",
                 _abi.GRADCMP_CASE_SKIPPED: "skipped", _abi.GRADCMP_CASE_ERROR: "error"}

    @property
    def verdict(self) -> str:
        return text(library.gradcmp_evidence_verdict(self._handle))

    @property
    def summary(self) -> str:
        """One line."""
        return text(library.gradcmp_evidence_summary(self._handle))

    @property
    def cases(self) -> List[Case]:
        found = []
        for i in range(library.gradcmp_evidence_case_count(self._handle)):
            case = _abi.gradcmp_case()
            library.gradcmp_evidence_case(self._handle, i, ctypes.byref(case))
            found.append(Case(text(case.group), text(case.name), self._outcomes[case.outcome],
                              None if case.text is None else text(case.text),
                              None if case.file is None else text(case.file), case.line or None))
        return found

    def __repr__(self) -> str:
        return f"<gradcmp.Evidence: {self.verdict}>"
