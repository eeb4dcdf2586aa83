"""What the comparing functions return."""

import ctypes
import json
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _abi
from ._library import Error, error_of, library, text, text_options, written


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

    def __bool__(self) -> bool:
        """True where all is as it should be: exit_status 0."""
        return self.exit_status == 0


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

    def __repr__(self) -> str:
        return f"<gradcmp.Comparison: {self.verdict}>"


class Report(Result):
    """Several candidates against one baseline: a sequence of Comparison."""

    _kind = "report"

    def __len__(self) -> int:
        return int(library.gradcmp_report_candidate_count(self._handle))

    def __getitem__(self, index: int) -> Comparison:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return Comparison(self, index % len(self))


class Sweep(Result):
    """Many configurations against one baseline."""

    _kind = "sweep"

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


class Findings(Result):
    """What check found in checkpoints, each alone."""

    _kind = "findings"

    def __len__(self) -> int:
        return int(library.gradcmp_findings_count(self._handle))

    def __bool__(self) -> bool:
        return self.exit_status == 0


class Evidence(Result):
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
