"""Distances in `forewarn report`, read back in a browser, against `replay --json`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from normal_drives import SPEC, drive

from forewarn.cli.main import main

Look = Callable[..., Any]
STRANGE = 17


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("distances"), random.Random(4)
    (folder / "m.yaml").write_text(SPEC + "anomaly: {}\n")
    for name, number in (("past", 30), ("new", 5)):
        (folder / name).mkdir()
        for i in range(number):
            (folder / name / f"{i:02}.jsonl").write_text(drive(chance))
    lines = [json.loads(line) for line in drive(chance, strange=STRANGE).splitlines()]
    for line in lines[30:34]:
        del line["gap"], line["speed"]
    (folder / "new" / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["-c", f"{folder}/m.yaml", "-q"]
    assert main(["learn", f"{folder}/past", *given, "-o", f"{folder}/m.json"]) == 0
    given = [f"{folder}/new", *given, "-m", f"{folder}/m.json"]
    assert main(["report", *given, "-o", f"{folder}/r.html"]) == 0
    return folder


@pytest.fixture
def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    given = ["replay", f"{folder}/new", "-c", f"{folder}/m.yaml", "-m", f"{folder}/m.json"]
    main([*given, "--json", "-q"])
    found = json.loads(capsys.readouterr().out)["recordings"]
    return [run for recording in found for run in recording["runs"]]


def drawn(shown: Any, holder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = shown.evaluate(
        f"(t => ({{x: t.x, y: t.y, text: t.text}}))"
        f"(document.getElementById({holder!r}).data.find(t => t.name === {name!r}))"
    )
    return found


def cells(shown: Any, section: str) -> list[list[str]]:
    found: list[list[str]] = shown.evaluate(
        f"[...document.querySelector('#{section} table').tBodies[0].rows]"
        ".map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nothing_fails_or_is_wider_than_the_screen(look: Look, folder, width, scheme) -> None:
    shown = look((folder / "r.html").read_text(), width, scheme)
    assert shown.console == [] and shown.evaluate("document.body.dataset.problems") == ""
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_runs_and_moments_are_those_of_the_replay(look: Look, folder, said) -> None:
    shown = look((folder / "r.html").read_text())
    odd = [run for run in said if run["verdict"] == "ANOMALOUS"]
    calm = [run for run in said if run["verdict"] != "ANOMALOUS"]
    for name, runs in (("runs", calm), ("anomalous runs", odd)):
        found = drawn(shown, "runs-plot", name)["y"]
        assert found == pytest.approx([run["value"] for run in runs], abs=1e-6)
    lead = shown.evaluate("document.querySelector('#distance .lead').innerText")
    assert f"{len(odd)} of 6 runs anomalous" in lead and "3 of 240 moments were not judged" in lead
    strange = odd[-1]
    row = cells(shown, "distance")[-1]
    assert row[1:4] == ["1.70", f"{strange['value']:.3g}", f"{strange['limit']:.3g}"]
    assert row[5].startswith(f"{strange['worst']['expected'][0]} ")


def test_the_distance_over_time_has_its_limit_and_where_it_was_crossed(look, folder, said) -> None:
    shown = look((folder / "r.html").read_text())
    odd = [run for run in said if run["verdict"] == "ANOMALOUS"]
    shown.evaluate("document.querySelectorAll('details').forEach(e => {e.open = true})")
    shown.wait("[...document.querySelectorAll('#moments .plot')].every(e => e.data)")
    holder, run = f"moments{len(odd) - 1}", odd[-1]
    line = drawn(shown, holder, "distance")
    assert line["x"] == pytest.approx([tick / 10 for tick in range(40)])
    assert max(y for y in line["y"] if y is not None) == pytest.approx(run["value"], abs=1e-6)
    assert line["y"].index(None) == 31 and line["y"].count(None) == run["not_judged"] == 3
    assert "speed" in line["text"][STRANGE]
    assert drawn(shown, holder, "limit")["y"] == pytest.approx([run["limit"]] * 2, abs=1e-6)
    first = drawn(shown, holder, "first above the limit")
    assert first["x"] == [STRANGE / 10] and first["y"][0] > run["limit"]
    assert cells(shown, "moments")[0][0] == "1.70"
