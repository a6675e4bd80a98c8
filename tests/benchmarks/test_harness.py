"""Figures can be trusted: what counts as time, who takes turns, and when they may be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks._harness import (
    Table,
    Target,
    Usage,
    number,
    processor_seconds,
    processor_time,
    replaced,
    run,
    take_turns,
)

pytestmark = pytest.mark.clocked

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def burn() -> None:
    subprocess.run([sys.executable, "-c", BURN], check=True)


def test_the_rival_counts_in_full_where_it_runs_in_a_process_of_its_own() -> None:
    begin = processor_time()
    burn()
    assert processor_time() - begin >= 0.3


def test_a_process_that_still_runs_is_asked_what_it_and_its_children_used() -> None:
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\ninput()"
    command = [sys.executable, "-c", f"{script}\n"]
    with subprocess.Popen(
        [*command[:2], command[2].replace("input()", "print(flush=True); input()")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processor_seconds(child.pid) >= 0.29  # the kernel counts in hundredths
        child.communicate(b"\n")


def test_works_take_turns() -> None:
    calls: list[str] = []
    take_turns(lambda: calls.append("a"), lambda: calls.append("b"), turns=3)
    assert "".join(calls) == "ababab"


def test_a_short_work_is_repeated_within_a_turn_and_told_for_one_call() -> None:
    calls: list[int] = []

    def work() -> int:
        calls.append(0)
        return sum(range(1000))

    (timed,) = take_turns(work, turns=2, least=0.05)
    assert timed.result == sum(range(1000))
    assert len(calls) > 100
    assert timed.seconds < 0.005


def test_our_own_children_are_no_others() -> None:
    before = Usage(passed=100.0, used=40.0, own=10.0)
    assert Usage(passed=120.0, used=50.0, own=20.0).others_since(before) == 0.0
    assert Usage(passed=120.0, used=50.0, own=15.0).others_since(before) == 0.25


def test_a_process_that_is_not_ours_counts_as_others() -> None:
    before = Usage.now()
    with subprocess.Popen(
        [sys.executable, "-c", BURN + "\ninput()"], stdin=subprocess.PIPE
    ) as child:
        while processor_seconds(child.pid) < 0.29:
            pass
        # It is not waited for yet: so far it is as foreign as any.
        now = Usage.now()
        assert now.others_since(before) * (now.passed - before.passed) >= 0.2
        child.communicate(b"\n")


def table(figure: float) -> Table:
    return Table(("What", "ms", "Target"), [("tick", figure, Target(2.0)), ("all", 1234, None)])


def test_a_missed_target_is_said_in_the_table_and_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--figure", "2.5"])

    def measure(figure: float = 1.0) -> list[Table]:
        return [table(figure)]

    assert run(measure) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[2:] == ["| tick | 2.50 | at most 2: missed |", "| all | 1,234 |  |"]
    assert "tick" in err
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert run(measure) == 0


def test_no_number_misses_every_target_and_no_figure_none() -> None:
    assert Target(1.0).missed(float("nan"))
    assert Target(1.0, at_least=True).missed(float("nan"))
    assert not Target(1.0, at_least=True).missed(None)
    assert not Target(1.0, at_least=True).missed(1.0)
    assert not Target(1.0).missed(1.0)


@pytest.mark.parametrize(
    ("figure", "text"),
    [(0.012345, "0.0123"), (1.0, "1.00"), (175_432.0, "175,000"), (12, "12"), (-0.5, "-0.500")],
)
def test_figures_have_three_digits(figure: float, text: str) -> None:
    assert number(figure) == text


def test_the_page_has_a_place_for_every_benchmark(repository: Path) -> None:
    page = (repository / "benchmarks" / "RESULTS.md").read_text("utf-8")
    for name in command.names():
        changed = replaced(page, name, "new")
        assert f"<!-- {name} -->\n\nnew\n\n<!-- end of {name} -->" in changed
        assert replaced(changed, name, "new") == changed
    with pytest.raises(ValueError, match="nothing"):
        replaced(page, "nothing", "new")


@pytest.mark.parametrize(("others", "written"), [(0.04, True), (0.06, False)])
def test_only_figures_of_an_idle_machine_are_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    others: float,
    written: bool,
) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text("<!-- small -->\nold\n<!-- end of small -->\n")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "small.py").write_text("print('| 1 |')")
    monkeypatch.setattr(command, "RESULTS", page)
    monkeypatch.setattr(command, "FOLDER", tmp_path / "benchmarks")
    usages = iter([Usage(0.0, 0.0, 0.0), Usage(100.0, 50.0, 50.0 - 100 * others)])
    monkeypatch.setattr(command.Usage, "now", lambda: next(usages))
    assert command.take("small", write=True) == written
    assert ("| 1 |" in page.read_text()) == written
    assert ("not written" in capsys.readouterr().err) != written
