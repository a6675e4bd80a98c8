"""The studies of others' data on data of the same kind: other names, missing keys, few runs."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluation.embodied import chains
from evaluation.foresight import sequor, trials
from evaluation.foresight.study import _digest, _learned_from
from evaluation.harness.command import command
from evaluation.harness.runs import Pass, forewarn, pass_over
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
    crashes = {name: one.tracks[0].terminal.tolist() for name, one in found.items()}
    assert crashes["N3_901.jsonl"] == [False] * 5 + [True], "it crashes where it stops"
    assert crashes["E1_3.jsonl"] == [False] * 6, "nobody says that this one crashes"


def test_trials_whose_names_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    for name, speed in (("N3_001.json", 1.0), ("N3_001.2.json", 2.0)):
        trial(tmp_path / "data" / name, speed=speed)
    found = passes(tmp_path / "data", tmp_path / "out")
    assert sorted(one.signals["speed"][0] for one in found) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("trial_7.json", None, "trial_7.json: its scenario 'tr' is not known (accepted: a name"),
        ("E2_003.json", '{"frames": []}', "E2_003.json: holds no frames"),
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


def test_a_command_ends_with_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    folder = ["--folder", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match=f"{missing} does not exist"):
        command(trials.main, ["--robot", str(missing), *folder])
    trial(tmp_path / "data" / "what.json")
    with pytest.raises(SystemExit, match=r"error: .*its scenario 'wh' is not known"):
        command(trials.main, ["--robot", str(tmp_path / "data"), *folder])


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
        trials.traffic(tmp_path / "data", tmp_path / "out")
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
        trials.traffic(tmp_path / "data", tmp_path / "out")


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
