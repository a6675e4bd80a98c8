"""The studies of others' data on data of the same kind: other names, missing keys, few runs."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.agents import sequor, tau, toolemu
from evaluation.agents.injection import known, whole_way
from evaluation.agents.injection_runs import read_runs
from evaluation.agents.outcome import Typed, forewarn, in_order, known_for, typed_runs
from evaluation.embodied import chains
from evaluation.foresight import trials
from evaluation.foresight.study import _digest, _learned_from
from evaluation.harness.command import command
from evaluation.harness.page import publish
from evaluation.harness.runs import Pass, pass_over
from evaluation.plans import study as plans
from evaluation.plans.safety_chip import rule_of
from evaluation.real import study as real
from evaluation.real.comma import write_bags
from evaluation.translators.data import Pair, pairs, translators
from forewarn.errors import InputError


def trial(path: Path, speed: float = 1.0, frames: int = 6, **extra: Any) -> Path:
    """Write a trial that drives at a speed and ends with a sudden stop."""
    made = [
        {"timestamp": 50.0 + k / 10, "lin_vel": [speed * (k < frames - 1), 0.0],
         "lin_acc": [0.4 if k == frames - 1 else 0.0, 0.0], "ang_vel": 0.1,
         "scan": [[-0.1, 0.5], [0.9, 0.4]], "obj_pos": [2.0, 0.1]} | extra
        for k in range(frames)
    ]  # fmt: skip
    made = [{key: value for key, value in one.items() if value is not None} for one in made]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"frames": made}), encoding="utf-8")
    return path


def passes(data: Path, folder: Path) -> list[Pass]:
    hand = sequor.load("sequor_hand.yaml")
    return [pass_over(hand, path) for path in sequor.write_traces(data, folder)]


def test_trials_of_other_numbers_and_scenarios_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    trial(data / "N3_901.json")
    trial(data / "E1_3.json", obj_pos=None, battery=0.5, note="größe")
    trial(data / "N6_7.json", ang_vel=None)
    (data / "README.md").write_text("what this is", encoding="utf-8")
    found = {one.path.name: one for one in passes(data, tmp_path / "out")}
    assert sorted(found) == ["E1_3.jsonl", "N3_901.jsonl", "N6_7.jsonl"]
    said = capsys.readouterr().out
    assert f"{data}: 3 trials (1 E1, 1 N3, 1 N6)" in said
    assert "N6_7.json: never known: ang_vel, turning" in said
    assert sequor.before(found["N3_901.jsonl"]) == 5, "it crashes where it stops"
    assert sequor.before(found["E1_3.jsonl"]) == 6, "nobody says that this one crashes"
    assert np.isfinite(sequor.trace_of(found["N6_7.jsonl"]).rows).all()


def test_trials_whose_names_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    for name, speed in (("N3_001.json", 1.0), ("N3_001.2.json", 2.0)):
        trial(tmp_path / "data" / name, speed=speed)
    found = passes(tmp_path / "data", tmp_path / "out")
    assert sorted(one.signals["speed"][0] for one in found) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("trial_7.json", None, "trial_7.json: its scenario 'tr' is not known (accepted: a name"),
        ("E2_003.json", '{"frames": []}', "E2_003.json: lin_vel: no frame says how fast"),
        ("E2_003.json", "no JSON", "E2_003.json: holds no frames (accepted: a document like"),
    ],
)
def test_a_file_that_is_no_trial_is_named(
    tmp_path: Path, name: str, text: str | None, says: str
) -> None:
    trial(tmp_path / "data" / "N3_002.json")
    path = trial(tmp_path / "data" / name)
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(says)):
        sequor.write_traces(tmp_path / "data", tmp_path / "out")


def test_other_trials_are_judged_without_their_mirror_images(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    for number, kind in enumerate(("E2", "E3", "N3", "N5")):
        trial(data / f"{kind}_00{number}.json", speed=1 + number)
        trial(other / f"{kind}_10{number}.json", speed=1 + number + 10 * (number in (0, 3)))
    both = sequor.passes_of(data, other, tmp_path / "out")
    [(learned, judged)] = sequor.splits_of(*both, other)
    assert [one.path.name for one in learned] == ["E2_000.jsonl", "N5_003.jsonl"]
    same = {sequor.likeness(one) for one in learned} & {sequor.likeness(one) for one in judged}
    assert not same and len(judged) == 4


def test_too_few_trials_are_an_error_that_says_what_is_missing(tmp_path: Path) -> None:
    trial(tmp_path / "data" / "N3_002.json")
    alone = passes(tmp_path / "data", tmp_path / "out")
    with pytest.raises(InputError, match=r"1 trial to judge, none of them a safe escape"):
        sequor.splits_of(alone, None, tmp_path / "data")
    trial(tmp_path / "data" / "E2_002.json", speed=2.0)
    both = passes(tmp_path / "data", tmp_path / "out")
    with pytest.raises(InputError, match=r"1 trial to learn from .*--judged"):
        sequor.splits_of(both, None, tmp_path / "data")


def runs(path: Path, *records: dict[str, Any]) -> Path:
    step = {"action": "send_money", "args": {"to": "DE77"}, "observation": "sent"}
    made = [{"task": "Pay", "steps": [step]} | record for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in made), encoding="utf-8")
    return path


def of_toolemu(path: Path) -> list[Typed]:
    file = toolemu.HERE / "toolemu.yaml"
    return typed_runs(file, path, toolemu.NAMES, toolemu.is_bad, toolemu.NEEDS)


def test_models_and_cases_of_any_name_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        {"model": f"new {n % 3}", "case": f"c{n}" if n % 2 else n, "tool_call_risk": n % 4,
         "note": "雪"}
        for n in range(12)
    ]  # fmt: skip
    path = runs(tmp_path / "data" / "x.jsonl", *records, records[0] | {"steps": []})
    found = of_toolemu(path.parent)
    assert "12 runs, 6 of them bad; 1 without a step left out" in capsys.readouterr().out
    parts = toolemu.by_model_and_case(found)
    assert sum(map(len, parts.values())) == 12 and all(parts.values())
    assert in_order(["b", 10, "a", 9]) == [9, 10, "a", "b"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tool_call_risk": None}, "x.jsonl::run=1: tool_call_risk: is missing (accepted"),
        ({"tool_call_risk": "severe"}, "tool_call_risk: is 'severe' (accepted: a number from 0"),
        ({"tool_call_risk": 7}, "tool_call_risk: is 7 (accepted: a number from 0"),
        ({"model": None}, "model: is missing (accepted: the name of the model)"),
    ],
)  # fmt: skip
def test_a_run_that_lacks_a_field_is_named(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    whole: dict[str, Any] = {"model": "m", "case": 1, "tool_call_risk": 1}
    changed = {k: v for k, v in (whole | change).items() if v is not None}
    path = runs(tmp_path / "x.jsonl", whole)
    with path.open("a", encoding="utf-8") as file:
        file.write(runs(tmp_path / "y.jsonl", changed).read_text(encoding="utf-8"))
    with pytest.raises(InputError, match=re.escape(says)):
        of_toolemu(path)


def test_one_model_alone_has_nothing_to_learn_from() -> None:
    run = Typed([], [], {"model": "m", "case": 1, "task_id": 1}, bad=True)
    groups = toolemu.by_model([run, run._replace(bad=False)])
    with pytest.raises(InputError, match="0 runs to learn from, 0 of them bad"):
        known_for(0, groups, None)
    (groups, others), *rest = toolemu.splits_of([run, run._replace(bad=False)], [run]).values()
    assert not rest and len(known_for("judged", groups, others)) == 2
    assert list(tau.by_task([run])) == [0]


def test_attacks_of_other_suites_are_read_and_what_is_missing_is_named(tmp_path: Path) -> None:
    whole = {"suite": "shopping", "user_task": "u", "attack_succeeded": True}
    path = runs(tmp_path / "x.jsonl", whole, whole | {"steps": [], "attack_succeeded": False})
    first, idle = read_runs(path)
    assert first.decisive is None and first.goal is None and len(first.rows) == 1
    assert idle.calls == () and idle.rows == ()
    with pytest.raises(InputError, match=r"2 runs of other suites .* with 0 attacks"):
        known([idle, idle], [0, 1])
    assert known([first, idle], [0, 1]) == [0, 1]
    lacking = runs(tmp_path / "y.jsonl", {"suite": "banking", "user_task": "u"})
    with pytest.raises(InputError, match=r"attack_succeeded: is missing \(accepted: true or false"):
        list(read_runs(lacking))
    assert whole_way(path)["steps"] > 0


def test_models_in_one_file_of_attacks_are_settings_of_their_own(tmp_path: Path) -> None:
    whole = {"suite": "shopping", "user_task": "u", "attack_succeeded": True}
    path = runs(tmp_path / "x.jsonl", whole | {"model": "a"}, whole | {"model": "b"}, whole)
    assert [one.setting for one in read_runs(path)] == ["x.jsonl: a", "x.jsonl: b", "x.jsonl"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"steps": None}, r"x.jsonl.*: steps: is missing \(accepted: a run like"),
        ({"steps": [{"action": "pay", "args": ["x"]}]}, r"steps\[0\]: is no action with arguments"),
        ("{", r"x.jsonl: line 2: is no JSON \(.*accepted: a run like"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_run_of_an_attack_is_named(
    tmp_path: Path, change: Any, says: str
) -> None:
    whole: dict[str, Any] = {"suite": "shopping", "user_task": "u", "attack_succeeded": True}
    path = runs(tmp_path / "x.jsonl", whole)
    if isinstance(change, dict):
        made = runs(tmp_path / "y" / "y.jsonl", whole | change).read_text(encoding="utf-8")
        change = json.dumps({k: v for k, v in json.loads(made).items() if v is not None})
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{change}\n")
    with pytest.raises(InputError, match=says):
        list(read_runs(path))


def test_figures_of_other_data_are_no_published_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = tmp_path / "results.json"
    published.write_text('{"a": 1}', encoding="utf-8")
    publish("mark", "a table", 2, published, tmp_path / "out" / "x", write=False, within="a")
    assert published.read_text(encoding="utf-8") == '{"a": 1}'
    own = tmp_path / "out" / "x" / "results.json"
    assert json.loads(own.read_text(encoding="utf-8")) == {"a": 2}
    assert "a table" in capsys.readouterr().out


def test_a_command_ends_with_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    for main in (sequor.main, toolemu.main, tau.main):
        with pytest.raises(SystemExit, match=f"{missing} does not exist"):
            command(main, ["--data", str(missing), "--folder", str(tmp_path)])
    trial(tmp_path / "data" / "what.json")
    with pytest.raises(SystemExit, match=r"error: .*its scenario 'wh' is not known"):
        command(sequor.main, ["--data", str(tmp_path / "data"), "--folder", str(tmp_path / "out")])


def test_a_kept_model_of_other_runs_is_no_model_of_these(tmp_path: Path) -> None:
    data, model = tmp_path / "data", tmp_path / "model.json"
    for number in (2, 4):
        trial(data / f"N3_00{number}.json", speed=float(number))
    one, other = sequor.write_traces(data, tmp_path / "out")
    forewarn("learn", one, "-c", sequor.HERE / "sequor_hand.yaml", "-o", model)
    assert _learned_from(model) == {_digest(one)} != {_digest(other)}


def test_a_line_of_translators_data_that_lacks_something_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lang2ltl_lifted_pairs.jsonl"
    good = {"nl": "always a", "ltl_prefix": "G a", "more": 1}
    path.write_text(json.dumps(good) + "\n" + json.dumps({"nl": "x"}) + "\n", encoding="utf-8")
    says = "lang2ltl_lifted_pairs.jsonl: line 2: lacks ltl_prefix (accepted: an object with nl,"
    with pytest.raises(InputError, match=re.escape(says)):
        list(pairs(tmp_path))
    path.write_text(json.dumps(good) + "\n{\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2: is no JSON"):
        list(pairs(tmp_path))


def chip(path: Path, **change: Any) -> Path:
    run = {"constraint": ["avoid kitchen"], "program": ["<char0> [walk] <kitchen> (205)"],
           "safe": True, "completed": True} | change  # fmt: skip
    kept = {key: value for key, value in run.items() if value is not None}
    path.write_text(json.dumps({"any": {"1": [kept]}}), encoding="utf-8")
    return path


def test_labelled_plans_alone_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chip(tmp_path / "runs.json")
    command(plans.main, ["--safety-chip", str(path), "--folder", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "Safety Chip: 0 of 1 verdicts agree" in said and "| - | 1 | 1 | 0 | 1 |" in said
    assert (tmp_path / "out" / "results.json").exists()
    says = re.escape("runs.json: any.1[0].safe: is None (accepted: true or false)")
    with pytest.raises(SystemExit, match=says):
        command(plans.main, ["--safety-chip", str(chip(path, safe=None))])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"constraint": None}, "any.1[0].constraint: is None (accepted: a list of sentences)"),
        ({"constraint": "avoid kitchen"}, "any.1[0].constraint: is 'avoid kitchen' (accepted: a"),
        ({"constraint": [1]}, "any.1[0].constraint: is [1] (accepted: a list of sentences)"),
        ({"program": 7}, "any.1[0].program: is no list of actions (accepted: runs like"),
        ("no JSON", "runs.json: is no JSON (Expecting value"),
    ],
)
def test_labelled_plans_that_are_none_are_named(tmp_path: Path, change: Any, says: str) -> None:
    path = chip(tmp_path / "runs.json")
    if isinstance(change, str):
        path.write_text(change, encoding="utf-8")
    else:
        record = json.loads(path.read_text(encoding="utf-8"))
        record["any"]["1"].insert(0, record["any"]["1"][0] | change)
        path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(SystemExit, match=re.escape(says)):
        command(plans.main, ["--safety-chip", str(path), "--folder", str(tmp_path / "out")])


def test_a_sentence_may_end_with_a_full_stop() -> None:
    assert rule_of("You can only go to bathroom twice.") == rule_of(
        "you can only go to bathroom twice"
    )


def test_a_chain_of_another_kind_is_named(tmp_path: Path) -> None:
    chain: dict[str, Any] = {"states": ["00"], "transition_probs": {}, "state_interpret": {}}
    (tmp_path / "model.json").write_text(json.dumps(chain))
    (tmp_path / "abstraction.json").write_text('{"predicates": ["collision"]}')
    with pytest.raises(InputError, match=r"abstraction.json: lacks parentReceptacles, keys"):
        chains.load(tmp_path)
    (tmp_path / "abstraction.json").write_text('{"parentReceptacles": [], "keys": []}')
    with pytest.raises(InputError, match=r"model.json: states: is .*accepted: 'finish'"):
        chains.load(tmp_path)


def test_one_scene_has_no_other_to_learn_from(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no CommonRoad scene"):
        real.study_ngsim(tmp_path / "data", tmp_path / "out")
    car = "".join(
        f"<state><time><exact>{k}</exact></time><position><point><x>{k}</x><y>0</y></point></position>"
        "<orientation><exact>0</exact></orientation><velocity><exact>10</exact></velocity></state>"
        for k in range(1, 20)
    )
    first = car[: car.index("</state>")].replace("<exact>1<", "<exact>0<", 1)
    shape = "<shape><rectangle><length>4</length><width>2</width></rectangle></shape>"
    (tmp_path / "data" / "ZAM_1.xml").write_text(
        f'<commonRoad timeStepSize="0.1"><dynamicObstacle id="1">{shape}<initialState>'
        f"{first.removeprefix('<state>')}</initialState><trajectory>{car}</trajectory>"
        "</dynamicObstacle></commonRoad>"
    )
    with pytest.raises(InputError, match=r"1 scene with a car .*three or more"):
        real.study_ngsim(tmp_path / "data", tmp_path / "out")
    with pytest.raises(InputError, match=r"1 scene with a car .*three or more"):
        trials.traffic(tmp_path / "data", tmp_path / "out", None)


def test_sentences_with_any_line_break_and_answers_of_any_kind_are_read(tmp_path: Path) -> None:
    row = {
        "id": "x1",
        "sentence": "a\u2028b",
        "tl": "globally light",
        "grounded_tl": ["globally", "prop_1"],
    }
    (tmp_path / "vltl" / "answers").mkdir(parents=True)
    for name, rows in (
        ("vltl/rescue.jsonl.gz", [row]),
        (
            "vltl/answers/new__rescue.jsonl.gz",
            [
                {"id": "x1", "prediction": said}
                for said in ("G prop_1", None, ["G", "prop_1"], {"a": 1})
            ],
        ),
    ):
        lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in rows) + "\n\n"
        (tmp_path / name).write_bytes(gzip.compress(lines.encode()))
    (found,) = translators(tmp_path)
    assert [one.text for one in found.answers] == ["G prop_1", "", "G prop_1", '{"a": 1}']
    (tmp_path / "nl2spec_expert_LTL_dataset.txt").write_text("First a; then b.;G(a -> F b)\n")
    assert [one.formula for one in pairs(tmp_path)] == ["globally prop_1", "G(a -> F b)"]


def test_a_formula_of_other_propositions_is_read_and_one_that_cannot_be_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("spot")
    from evaluation.translators.study import of_pairs

    rows = [Pair("Lang2LTL", "", text) for text in ("U j & k F z", "G q", "i o U p y", "G & a")]
    found = of_pairs(rows)["Lang2LTL"]
    assert (found["formulas"], found["not read"], found["disagreements"]) == (4, 1, 0)
    assert "G & a" in capsys.readouterr().err


def test_what_is_too_short_or_of_another_kind_is_no_segment(tmp_path: Path) -> None:
    for name, columns in (("speed", 1), ("radar", 7)):
        folder = tmp_path / "processed_log" / "CAN" / name
        folder.mkdir(parents=True)
        for kind, values in (("t", np.arange(30.0)), ("value", np.ones((30, columns)))):
            with (folder / kind).open("wb") as file:
                np.save(file, values)
    with pytest.raises(InputError, match=r"is 29 s long \(accepted: more than the 40 s"):
        write_bags(tmp_path, tmp_path / "out")
    assert [path.exists() for path in write_bags(tmp_path, tmp_path / "out", 20.0)] == [True, True]
    write_bags(tmp_path, tmp_path / "out", 20.0)  # once more into the same folder
    for name, values, says in (
        ("value", np.ones((30, 3)), r"radar: has 30 rows of 3 values \(accepted: rows of 7"),
        ("value", np.full((30, 7), np.nan), r"radar: has 0 rows of 7 values"),
        ("value", np.ones((30, 7)), ""),
        ("t", np.where(np.arange(30) == 5, np.nan, np.arange(30.0)), ""),
        ("t", np.arange(30.0)[::-1], r"radar: t: is 28.0 after 29.0 \(accepted: times that do not"),
    ):
        with (folder / name).open("wb") as file:
            np.save(file, values)
        if not says:
            assert all(path.exists() for path in write_bags(tmp_path, tmp_path / "out", 20.0))
            continue
        with pytest.raises(InputError, match=says):
            write_bags(tmp_path, tmp_path / "out")
