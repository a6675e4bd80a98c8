"""What the mutation runner makes of mutmut's answers; mutmut itself runs with ``make mutants``."""

from __future__ import annotations

from pathlib import Path

from evaluation.mutation.run import Change, Subject, change, findings, subjects

DIFF = """\
--- src/forewarn/learning/counting.py
+++ src/forewarn/learning/counting.py
@@ -1,9 +1,9 @@
     def _enter(self, state: int) -> bool:
         previous = self._state
-        over = previous is not None and previous < 0
+        over = previous is not None and previous < 1
         if (self._fresh or over) and state >= 0:
"""
MUTANT = "forewarn.learning.counting.xǁTransitionCounterǁ_enter__mutmut_4"
PLACE = Change(
    "_enter",
    "over = previous is not None and previous < 0",
    "over = previous is not None and previous < 1",
)


def test_a_change_is_known_by_its_function_and_its_lines() -> None:
    assert change(MUTANT, DIFF) == PLACE
    assert change("forewarn.learning.counting.x_build_model__mutmut_12", "").function == (
        "build_model"
    )
    several = change(MUTANT, "-    a = f(\n-        b)\n+    a = f()\n")
    assert several == Change("_enter", "a = f( b)", "a = f()")


def test_what_nothing_noticed_needs_an_explanation_and_an_explanation_a_change() -> None:
    other = PLACE._replace(function="add")
    explained = Subject("a.py", [], {PLACE: "it is the same"})
    assert findings(explained, [PLACE, PLACE]) == []
    assert len(findings(explained, [PLACE, other])) == 1
    assert "not noticed" in findings(explained, [PLACE, other])[0]
    assert ["stale" in finding for finding in findings(explained, [])] == [True]


def test_lengths_that_are_not_compared_need_no_explanation() -> None:
    was = "for a, b in zip(x, y, strict=True):"
    for becomes in (
        was.replace("True", "False"),
        was.replace("True", "None"),
        "for a, b in zip(x, y, ):",
    ):
        assert findings(Subject("a.py", [], {}), [Change("f", was, becomes)]) == []
    assert findings(Subject("a.py", [], {}), [Change("f", "x, strict=True, ):", "x, ):")]) == []
    for becomes in ("for a, b in zip(x, None, strict=True):", "for a, b in zip(x, strict=True):"):
        assert len(findings(Subject("a.py", [], {}), [Change("f", was, becomes)])) == 1


def test_assertions_need_no_explanation() -> None:
    weaker = Change("f", "assert a is not None and b", "assert a is not None or b")
    assert findings(Subject("a.py", [], {}), [weaker]) == []


def test_the_table_names_modules_and_tests_that_exist(repository: Path) -> None:
    text = (repository / "evaluation" / "mutation" / "modules.yaml").read_text("utf-8")
    known = subjects(text)
    assert len({item.name for item in known}) == len(known)
    for item in known:
        package = item.module.partition("/")[0]
        source = (repository / package / "src" / item.module).read_text("utf-8")
        assert item.tests
        assert all((repository / test.partition("::")[0]).exists() for test in item.tests)
        for place, reason in item.explained.items():
            assert f"def {place.function}(" in source
            assert len(reason.split()) > 3
