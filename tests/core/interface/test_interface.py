"""What `import forewarn` gives: these names and no others, and what the commands give."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import forewarn
from forewarn.cli.main import main

NAMES = {
    "Answer", "ForewarnError", "Learned", "Monitor", "Replay", "Run", "Step", "__version__",
    "check", "compare", "learn", "load_monitor", "replay",
}  # fmt: skip
RULE = """\
properties:
  no_harm:
    formula: always(not high)
    horizon: 3
    thresholds: {warn: 0.1, act: 0.3, release: 0.05}
    enter: 1
    hold: 0
"""
STEPS = f"""\
version: 1
clock: steps
signals: {{level: {{}}, kind: {{default: plain}}}}
predicates: {{high: level > 2, odd: kind == 'odd'}}
{RULE}"""
TICKS = f"""\
version: 1
rate: 2
startup_grace: 0
signals: {{level: {{timeout: 1.2}}, kind: {{default: plain, timeout: 3}}}}
predicates: {{high: level > 2, odd: kind == 'odd'}}
{RULE}"""
LINES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "level": st.sampled_from([0, 1, 2.5, 3, None]),
            "kind": st.sampled_from(["odd", "plain"]),
            "action": st.sampled_from(["go", "stay", None]),
        },
    ),
    min_size=1,
    max_size=12,
)


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both monitor files, recordings and models that the command learned."""
    folder = tmp_path_factory.mktemp("interface")
    rng = np.random.default_rng(3)
    for clock, text in (("steps", STEPS), ("ticks", TICKS)):
        (folder / f"{clock}.yaml").write_text(text)
        lines = [
            {"level": float(level), "kind": "odd" if level % 2 else "plain", "action": "go"}
            for level in rng.integers(0, 4, 400)
        ]
        if clock == "ticks":
            lines = [{"t": k / 2, **line} for k, line in enumerate(lines)]
        write(folder / f"{clock}.jsonl", lines)
        command = ["learn", folder / f"{clock}.jsonl", "-c", folder / f"{clock}.yaml"]
        assert main([*map(str, command), "-o", str(folder / f"{clock}.json"), "-q"]) == 0
    return folder


def test_the_names_are_these_and_each_is_documented(repository: Path) -> None:
    assert set(forewarn.__all__) == set(dir(forewarn)) == NAMES
    page = (repository / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    titles = re.findall(r"^### `(\w+)", page, re.M)
    assert sorted(titles) == sorted(NAMES - {"__version__"})
    assert "`__version__`" in page
    for name in NAMES - {"__version__"}:
        assert len(getattr(forewarn, name).__doc__) > 40, name
    with pytest.raises(AttributeError, match="no attribute 'Watch'"):
        forewarn.Watch  # noqa: B018


def test_the_page_lists_every_public_member(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    own = {"compiled", "counts", "model", "runs"}  # said to be Forewarn's own
    values = forewarn.Answer, forewarn.Learned, forewarn.Monitor, forewarn.Replay
    for kind in (*values, forewarn.Run, forewarn.Step):
        fields = {*getattr(kind, "__dataclass_fields__", ()), *getattr(kind, "_fields", ())}
        inherited = {*dir(tuple)} if issubclass(kind, tuple) else set()
        members = {n for n in vars(kind) if not n.startswith("_")} - inherited
        for member in (fields | members) - own:
            assert re.search(rf"`{member}\b", page), f"{kind.__name__}.{member}"


def test_importing_it_imports_nothing_else() -> None:
    code = (
        "import sys; before = {*sys.modules}; import forewarn; new = {*sys.modules} - before; "
        "print(*sorted(m for m in new if m.partition('.')[0] not in sys.stdlib_module_names))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["forewarn"]


@pytest.mark.parametrize("clock", ["steps", "ticks"])
def test_learns_what_the_command_learns(folder: Path, tmp_path: Path, clock: str) -> None:
    learned = forewarn.learn(folder / f"{clock}.yaml", str(folder / f"{clock}.jsonl"))
    learned.save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == (folder / f"{clock}.json").read_bytes()
    assert repr(learned) == f"Learned({learned.states} states, {learned.transitions} transitions)"
    assert learned.transitions == 399


@pytest.mark.parametrize("part", [(), (20, 150)])
def test_compares_what_the_command_compares(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(5)
    bags = [
        write(tmp_path / f"{name}.jsonl", [
            {"t": k / 2, "level": float(level), "kind": "odd" if level % 2 else "plain"}
            for k, level in enumerate(rng.integers(0, 4, 400))
        ])
        for name in "abc"
    ]  # fmt: skip
    flags = [text for name, t in zip(("--from", "--to"), part, strict=False) for text in (name, t)]
    files, rest = [folder / "ticks.yaml", *bags], ["--rival", "great=level", "--folds", 3, *flags]
    assert main([*map(str, ("compare", *files, *rest)), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    times = dict(zip(("begin", "end"), part, strict=False))
    found = forewarn.compare(files[0], bags, rivals=["great=level"], folds=3, **times)
    assert found.document == said
    assert [row["name"] for row in found.rows] == ["ticks", "great"]
    assert found.rows[0]["pr_area"] == said["properties"]["no_harm"][0]["pr_area"]["value"]
    assert repr(found).startswith("Answer(no_harm ticks ")
    assert "<td>great</td>" in found._repr_html_()
    with pytest.raises(TypeError, match="foldz"):
        forewarn.compare(files[0], bags, foldz=3)


def test_checks_what_the_command_checks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, queries = folder / "steps.json", ["EF high", "AG !high"]
    code = main(["check", str(model), *queries, "--json"])
    said = json.loads(capsys.readouterr().out)
    found = forewarn.check(model, queries)
    assert (found.document, found.fine) == (said, code == 0) == (said, False)
    assert len(found.rows) == len(found.to_frame() if _has_pandas() else found.rows) == 2
    with pytest.raises(forewarn.ForewarnError):
        forewarn.check(model, "EF (")


def _has_pandas() -> bool:
    return find_spec("pandas") is not None


@pytest.mark.parametrize("clock", ["steps", "ticks"])
def test_replays_what_the_command_replays(
    folder: Path, clock: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [folder / f"{clock}.{end}" for end in ("jsonl", "yaml", "json")]
    code = main(["replay", *map(str, (files[0], "-c", files[1], "-m", files[2])), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert code == 1
    replay = forewarn.replay(forewarn.load_monitor(files[1], files[2]), files[0])
    found = said["properties"]["no_harm"]
    score = replay.scores["no_harm"]
    assert (score.violations, score.alerts) == (found["violations"], found["alerts"])
    assert score.violations > 0
    assert [event["tick"] for event in replay.events] == [
        event["tick"] for event in said["recordings"][0]["events"]
    ]
    assert {event["recording"] for event in replay.events} == {*replay.recordings}
    assert any("learned from this very recording" in remark for remark in replay.remarks)
    with pytest.raises(KeyError, match="accepted: no_harm"):
        replay.tracks("harm")


@pytest.mark.parametrize("clock", ["steps", "ticks"])
@settings(max_examples=examples(25))
@given(lines=LINES, gaps=st.lists(st.integers(1, 4), min_size=12, max_size=12))
def test_a_run_is_what_replay_says_to_the_last_bit(
    clock: str, folder: Path, lines: list[dict[str, Any]], gaps: list[int]
) -> None:
    if clock == "ticks":
        lines = [{"t": sum(gaps[:k]) / 2, **line} for k, line in enumerate(lines)]
    trace, told = write(folder / "out.jsonl", lines), folder / "verdicts.jsonl"
    monitor = forewarn.load_monitor(folder / f"{clock}.yaml", folder / f"{clock}.json")
    command = ["replay", trace, "-c", folder / f"{clock}.yaml", "-m", folder / f"{clock}.json"]
    main([*map(str, command), "--verdicts", str(told), "-q", "--exit-zero"])
    said = {line["time_ns"]: line for line in map(json.loads, told.read_text().splitlines())}
    run = monitor.start()
    end = 0
    for line in lines:
        if clock == "ticks":  # what the monitor is not asked about in between counts as a tick
            while end < line["t"] * 2:
                run.step({"t": end / 2})
                end += 1
            end += 1
        step = run.step(line)
        expected = said[round(step.time * 1e9)]["properties"][0]
        found = step.properties["no_harm"]
        risk = None if math.isnan(found.probability) else found.probability
        assert risk == expected["probability"]
        assert (found.violation, found.level.name) == (expected["violation"], expected["level"])
        assert found.status.name == expected["status"]


def test_without_times_a_tick_is_one_period_after_the_last(folder: Path) -> None:
    run = forewarn.load_monitor(folder / "ticks.yaml").start()
    assert [run.step({"level": np.float32(1)}).time for _ in range(3)] == [0.0, 0.5, 1.0]
    assert run.step({"t": 9}).unknown == ("level",)
    with pytest.raises(forewarn.ForewarnError, match=r"belongs to a tick that is over.*after 9 s"):
        run.step({"t": 8.9})


def test_wrong_values_are_named(folder: Path) -> None:
    run = forewarn.load_monitor(folder / "steps.yaml").start()
    with pytest.raises(forewarn.ForewarnError, match=r"level: .* is of type object .accepted: "):
        run.step({"level": object()})
    with pytest.raises(forewarn.ForewarnError, match=r"level: .* is too large"):
        run.step({"level": 10**400})
    assert math.isnan(run.step({"level": 1}).properties["no_harm"].probability)


def test_steps_that_are_messages_cannot_be_stepped(folder: Path, tmp_path: Path) -> None:
    topic = "signals: {level: {topic: /level, type: std_msgs/msg/Float64, value: data}}"
    text = re.sub(r"signals: .*", f"step: /level\n{topic}", STEPS).replace(
        ", odd: kind == 'odd'", ""
    )
    (tmp_path / "monitor.yaml").write_text(text)
    monitor = forewarn.load_monitor(tmp_path / "monitor.yaml")
    with pytest.raises(forewarn.ForewarnError, match=r"monitor.yaml: step: /level: .*accepted"):
        monitor.start()
