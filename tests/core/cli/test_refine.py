"""``forewarn refine``: what merged states promise goes, what runs show stays."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest

from forewarn.config import load_spec
from forewarn.config.yaml_text import load_document

TEXT = """\
version: 1
clock: steps
signals: {key: {}, room: {}, burnt: {}}
terminal: {fire: burnt}
properties: {safe: {formula: always(not fire), horizon: 3, thresholds: {act: 0.5}}}
states: {kind: tree, variables: [key, room]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def recorded(tmp_path: Path):
    """Only who has the key can light the stove in the kitchen, and sets it on fire."""

    def record(share: float, seed: int = 0, number: int = 90) -> Path:
        chance = random.Random(seed)
        lines = []
        for run in range(number):
            key = chance.random() < share
            rows = [("hall", "enter", False)] + [("kitchen", "wait", False)] * chance.randint(0, 2)
            rows += [("kitchen", "light" if key else "leave", False), ("hall", None, key)]
            for room, action, burnt in rows:
                line = {"run": run, "key": key, "room": room, "burnt": burnt, "action": action}
                lines.append(json.dumps(line) + "\n")
        path = tmp_path / f"runs{share}_{seed}.jsonl"
        path.write_text("".join(lines))
        return path

    return record


def test_a_fire_that_only_merged_states_promise(forewarn, config, recorded):
    bound = ("--query", "Pmax(fire) <= 0.3")
    printed = forewarn("refine", recorded(0.1), "-c", config, *bound, "--write")
    assert printed.code == 0 and "the bound holds" in printed.out
    tree = load_document(config).data["states"]["tree"]
    assert "key" in json.dumps(tree) and load_spec(config).states.kind == "tree"
    # The refined tree is where the next refinement begins: it has nothing to do.
    again = json.loads(forewarn("refine", recorded(0.1), "-c", config, *bound, "--json").out)
    assert (again["ending"], again["rounds"], again["diff"]) == ("holds", [], "")


def test_a_fire_that_runs_really_have(forewarn, config, recorded):
    found = forewarn(
        "refine", recorded(0.6), "-c", config, "--query", "Pmax(fire) <= 0.3", "--json"
    )
    said = json.loads(found.out)
    assert found.code == 1 and said["ending"] == "real"
    assert 0.3 < said["borne_out"] <= said["answer"]["estimate"]
    assert said["critical"]["probability"] > 0.3
    assert any(path["runs"] for path in said["paths"])
    assert config.read_text() == TEXT


def test_splits_are_tried_on_recordings_that_are_given(forewarn, config, recorded):
    held_out = recorded(0.1, seed=5)
    found = forewarn(
        "refine", recorded(0.1), "-c", config, "--query", "Pmax(fire) <= 0.3",
        "--held-out", held_out,
    )  # fmt: skip
    assert found.code == 0 and "s0" in found.out


def test_the_lowest_probability_may_be_bounded_too(forewarn, config, recorded):
    found = forewarn("refine", recorded(0.1), "-c", config, "--query", "Pmin(fire) <= 0.3")
    assert found.code == 0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("Pmax(fire)", "no bound"),
        ("Pmax(fire) >= 0.3", "no bound"),
        ("Pmax(fire, 5) <= 0.3", "no bound"),
        ("Pmax(smoke) <= 0.3", "names: fire"),
        ("fire", "no bound"),
    ],
)
def test_what_is_no_bound_is_refused(forewarn, config, recorded, query, said):
    found = forewarn("refine", recorded(0.1), "-c", config, "--query", query)
    assert found.code == 2 and said in found.err


def test_two_runs_are_too_few_to_hold_any_out(forewarn, config, recorded):
    path = recorded(0.5, number=2)
    found = forewarn("refine", path, "-c", config, "--query", "Pmax(fire) <= 0.3")
    assert found.code == 2 and "three or more" in found.err


def test_runs_that_never_burn_are_an_error(forewarn, config, recorded):
    found = forewarn("refine", recorded(0.0), "-c", config, "--query", "Pmax(fire) <= 0.3")
    assert found.code == 2 and "no run reaches the goal" in found.err


def test_the_page_shows_what_abstract_and_refine_print(
    forewarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    page = (repository / "docs" / "howto" / "steps.md").read_text(encoding="utf-8")
    page = page.partition("## States learned from traces")[2]

    def blocks(language: str) -> list[str]:
        return [part.split("```")[0] for part in page.split(f"```{language}\n")[1:]]

    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[0], "make_runs.py", "exec"), {})
    Path("monitor.yaml").write_text(blocks("yaml")[0])
    shown = [block for block in blocks("text") if block.startswith("$ forewarn")]
    for command, block in zip(("abstract", "refine"), shown, strict=False):
        assert block.startswith(f"$ forewarn {command} ")
        as_shown(forewarn, block)
        if command == "abstract":  # before refine writes its tree
            report = (repository / "docs" / "howto" / "report.md").read_text(encoding="utf-8")
            as_shown(forewarn, report.split("```text\n")[1].split("```")[0])
            assert Path("refined.html").read_text().endswith("</html>\n")
    assert load_spec(Path("monitor.yaml")).states.kind == "tree"


def as_shown(forewarn, block: str) -> None:
    typed, _, shown = block.partition("\n")
    printed = forewarn(*shlex.split(typed)[2:]).text
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    for part in shown.split("...\n"):
        assert part in lines
