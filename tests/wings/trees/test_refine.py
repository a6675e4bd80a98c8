"""``forewarn refine``: what merged states promise goes, what runs show stays."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from learned_runs import SPEC, record

from forewarn.config.file import load_spec


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def recorded(tmp_path: Path):
    def written(share: float, seed: int = 0, number: int = 90) -> Path:
        return record(tmp_path / f"runs{share}_{seed}.jsonl", seed, number, share=share)

    return written


COMMENTED = """\
states:
  # Ours since May.
  kind: tree  # no predicates
  # learned by `forewarn learn-states` from 3 recordings; edit it as you like
  variables: [key, room]  # what the robot knows
  tree:  # by Anna
    # The kitchen has the longer name.
    if: "len(room) > 5"  # kitchen
    then: inside  # stove's here
    # Elsewhere nothing burns.
    else: "outside"  # "hall", say
"""


def test_what_people_wrote_beside_a_tree_stays_when_it_is_refined(forewarn, config, recorded):
    config.write_text(SPEC.replace(SPEC.splitlines()[-1] + "\n", COMMENTED) + "# the end\n")
    bound = ("--query", "Pmax(fire) <= 0.3")
    refined = forewarn("refine", recorded(0.1), "-c", config, *bound, "--write", "--json")
    assert len(json.loads(refined.out)["rounds"]) == 2
    text = config.read_text()
    for wanted in (
        "  # Ours since May.\n  kind: tree  # no predicates\n  # refined by",
        "  variables: [key, room]  # what the robot knows\n  tree:  # by Anna\n",
        '    # The kitchen has the longer name.\n    if: "len(room) > 5"  # kitchen\n',
        "    then:  # stove's here\n      if: ",
        '    # Elsewhere nothing burns.\n    else:  # "hall", say\n      if: ',
        "  ]\n# the end\n",
    ):
        assert wanted in text
    assert "learned by" not in text
    assert load_spec(config).states.kind == "tree"
    # A tree that is grown anew has other leaves: what was said of the old ones goes.
    assert forewarn("learn-states", recorded(0.1), "-c", config, "--write").code == 0
    assert "stove's here" not in config.read_text() and "# Ours since May." in config.read_text()


TWO_ENDS = """\
version: 1
clock: steps
signals: {x: {}, done: {}, crashed: {}}
terminal: {success: done, failure: crashed}
properties: {safe: {formula: always(not failure), horizon: 3, thresholds: {act: 0.5}}}
states: {kind: tree, variables: [x], tree: s0}
"""


@pytest.mark.parametrize("ends", ["labelled", "drop", "absorb"])
def test_runs_that_end_well_count_against_those_that_fail(forewarn, config, tmp_path, ends):
    # Every run tries until it has failed or succeeded: of 30 tries, 3 fail and 15 succeed.
    ways = [(0, "failure")] * 3 + [(0, "success")] * 9 + [(2, "success")] * 6
    lines = []
    for number, (waits, end) in enumerate(ways):
        run = {"run": number, "x": 0, "done": False, "crashed": False, "action": "try"}
        lines += [run] * (waits + 1)
        if ends == "labelled" or end == "failure":
            lines.append({**run, "done": end == "success", "crashed": end == "failure"})
    trace, model = tmp_path / "runs.jsonl", tmp_path / "model.json"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config.write_text(
        TWO_ENDS + f"learning: {{recording_end: {'absorb' if ends == 'absorb' else 'drop'}}}\n"
    )
    # Held out are runs of both kinds; they do not count.
    held_out = tmp_path / "held_out.jsonl"
    held_out.write_text(trace.read_text().replace('"x": 0', '"x": 1'))
    words = ("-c", config, "--held-out", held_out)
    found = forewarn("refine", trace, *words, "--query", "Pmax(failure) <= 0.2", "--json")
    said = json.loads(found.out)
    # Where a recording just ends nobody knows what followed: only the failures are seen to end,
    # unless the end of a recording is a state.
    known = ends != "drop"
    estimate = 3 / 18 if known else 1.0
    assert said["answer"]["estimate"] == pytest.approx(estimate)
    assert said["ending"] == ("holds" if known else "real")
    assert {one["following"] for one in said["flows"]} >= {"(goal)", "(ended)"} - (
        set() if known else {"(ended)"}
    )
    assert forewarn("learn", trace, "-c", config, "-o", model).code == 0
    checked = forewarn("check", model, "Pmax(failure)", "--unsmoothed", "--json")
    [answer] = json.loads(checked.out)["queries"]
    assert answer["initial"]["estimate"] == pytest.approx(said["answer"]["estimate"])
    upper = answer["initial"]["upper"]
    if ends == "absorb":  # bounds of the model are of one state more: success, which never occurs
        assert 3 / 18 < said["answer"]["upper"] < upper
    else:
        assert said["answer"]["upper"] == pytest.approx(upper)


def test_splits_are_tried_on_recordings_that_are_given(forewarn, config, recorded):
    held_out = recorded(0.1, seed=5)
    found = forewarn(
        "refine", recorded(0.1), "-c", config, "--query", "Pmax(fire) <= 0.3",
        "--held-out", held_out,
    )  # fmt: skip
    assert found.code == 0 and "s0" in found.out


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
    for command, block in zip(("learn-states", "refine"), shown, strict=False):
        assert block.startswith(f"$ forewarn {command} ")
        as_shown(forewarn, block)
        if command == "learn-states":  # before refine writes its tree
            bound = ("--query", "Pmax(fire) <= 0.05", "--report", "refined.html")
            said = forewarn("refine", "runs.jsonl", "-c", "monitor.yaml", *bound).text
            assert "the bound is broken by the runs themselves" in said
            assert Path("refined.html").read_text().endswith("</html>\n")
    assert load_spec(Path("monitor.yaml")).states.kind == "tree"


def as_shown(forewarn, block: str) -> None:
    typed, _, shown = block.partition("\n")
    printed = forewarn(*shlex.split(typed)[2:]).text
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    for part in shown.split("...\n"):
        assert part in lines
