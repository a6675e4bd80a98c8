"""Recordings that belong together: left out together, drawn together, kept in the model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walks import FORBIDS_A_CRASH, walk

from forewarn.assessment.outcome_counts import watch_for
from forewarn.checking.credible import RiskQuery
from forewarn.checking.interface import label_states
from forewarn.checking.numeric import risk_table
from forewarn.cli import main
from forewarn.cli.train_test_separation import identified
from forewarn.config.file import load_spec, parse_spec
from forewarn.config.sections import BoundsSpec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ConfigErrors, InputError, RecordingError
from forewarn.learning.estimates.choice import choose
from forewarn.learning.estimates.crossing import FOLDS, cross
from forewarn.learning.estimates.problem import Problem
from forewarn.learning.executors import Here
from forewarn.learning.folds import FEW, dealt, fold_of, grouping_of, identity_of, parted
from forewarn.learning.pipeline import learn
from forewarn.learning.shard_store import ShardStore
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.models.estimates import source_of
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import load_model, merge_models, save_model
from forewarn.monitoring.estimated import clustered_chain, judged_property
from forewarn.recordings.groups import Grouping
from forewarn.recordings.interface import Recording

TEXT = (
    FORBIDS_A_CRASH
    + """\
properties: {p: {formula: always(not crash), horizon: 5, estimator: ensemble}}
learning: {group_by: trial, group_source: trials.csv}
"""
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 12 trials, each recorded twice, a table of them and a monitor file."""
    folder = tmp_path_factory.mktemp("trials")
    lines = ["recording,trial,by"]
    for seed in range(12):
        gaps = walk(seed)
        for by, shift in (("one", 0.0), ("other", 0.001)):
            name = f"{by}{seed:02}.jsonl"
            rows = [{"t": float(t), "x": x + shift} for t, x in enumerate(gaps)]
            rows[-1]["x"] = gaps[-1]
            (folder / name).write_text("\n".join(map(json.dumps, rows)) + "\n")
            lines.append(f"{name},t{seed},{by}")
    (folder / "trials.csv").write_text("\n".join(lines) + "\n")
    (folder / "monitor.yaml").write_text(TEXT)
    (folder / "alone.yaml").write_text(TEXT[: TEXT.index("learning")])
    return folder


def recordings(world: Path) -> list[Path]:
    return sorted(world.glob("*.jsonl"))


def learned(world: Path, name: str = "monitor.yaml", **options: Any) -> CountModel:
    compiled = compile_spec(load_spec(world / name))
    watch = watch_for(compiled)
    found = learn(recordings(world), compiled.spec, compiled.abstraction, watch=watch, **options)
    return found.model


def problem(world: Path, model: CountModel) -> Problem:
    compiled = compile_spec(load_spec(world / "monitor.yaml"))
    automaton = compiled.automata[0]
    question = RiskQuery(automaton, label_states(automaton, model.vocabulary, model.states), 5)
    return Problem(model, question, judged_property(compiled.spec, "p", automaton))


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1), st.integers(2, 6))
def test_groups_are_dealt_out_whole_and_evenly(clusters: list[str], folds: int) -> None:
    found = dealt(clusters, folds)
    of = dict(zip(clusters, found, strict=True))
    assert [of[name] for name in clusters] == found
    sizes = Counter(of.values())
    assert max(sizes.values()) - min(sizes[fold] for fold in range(folds)) <= 1
    assert dealt(clusters[::-1], folds) == found[::-1]
    alone = [f"{i:03}" for i in range(len(clusters))]
    assert dealt(alone, folds) == [i % folds for i in range(len(clusters))]


@given(st.lists(st.text("0123456789abcdef", min_size=1), min_size=1, max_size=60), st.data())
def test_the_folds_of_groups_do_not_depend_on_the_order(
    names: list[str], data: st.DataObject
) -> None:
    folds = data.draw(st.integers(1, 12))
    own = dict(zip(names, parted(names, folds), strict=True))
    # Who is given twice, as a copy is, stays in one fold; and nobody's depends on who came first.
    other = data.draw(st.permutations([*names, *names]))
    assert parted(other, folds) == [own[name] for name in other]
    assert all(0 <= fold < folds for fold in own.values())


@given(st.sets(st.text(min_size=1), min_size=1, max_size=FEW - 1), st.integers(1, 12))
def test_few_groups_fill_their_folds_evenly(names: set[str], folds: int) -> None:
    sizes = Counter(parted([*names], folds))
    assert len(sizes) == min(folds, len(names))
    assert max(sizes.values()) - min(sizes.values()) <= 1


@given(st.sets(st.text(), min_size=FEW, max_size=2 * FEW), st.integers(1, 12))
def test_of_many_groups_each_stays_where_others_come(names: set[str], folds: int) -> None:
    own = dict(zip(names, parted([*names], folds), strict=True))
    more = {*names, *map(str, range(FEW))}
    assert {*own.items()} <= {*zip(more, parted([*more], folds), strict=True)}
    assert own == {name: fold_of(name, folds) for name in names}


def test_a_table_beside_the_monitor_file_says_what_belongs_together(world: Path) -> None:
    groups = grouping_of(load_spec(world / "monitor.yaml"))
    known = [identity_of(path, groups) for path in recordings(world)]
    assert [one.cluster for one in known] == [f"trial=t{seed}" for seed in range(12)] * 2
    assert [one.digest for one in known] == [
        identity_of(path, None).cluster for path in recordings(world)
    ]


def test_paths_may_say_it(world: Path) -> None:
    (world / "paths.yaml").write_text(TEXT.replace("trials.csv", "'{trial}.jsonl'"))
    groups = grouping_of(load_spec(world / "paths.yaml"))
    known = [identity_of(path, groups) for path in recordings(world)[:2]]
    assert [one.cluster for one in known] == ["trial=one00", "trial=one01"]


def test_a_recording_without_a_value_is_refused(world: Path) -> None:
    (world / "short.yaml").write_text(TEXT.replace("trials.csv", "short.csv"))
    (world / "short.csv").write_text("recording,trial\none00.jsonl,t0\n")
    spec = load_spec(world / "short.yaml")
    with pytest.raises(RecordingError, match=r"one01\.jsonl: trial: has no value"):
        identified(recordings(world), spec, Here())


@pytest.mark.parametrize(
    ("learning", "key"),
    [
        ("{group_by: 'a b'}", "learning.group_by"),
        ("{group_by: a, group_source: '{a}/{a}'}", "learning.group_source"),
        ("{group_source: trials.csv}", "line 9: learning"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(learning: str, key: str) -> None:
    text = f"{TEXT[: TEXT.index('learning')]}learning: {learning}\n"
    with pytest.raises((ConfigError, ConfigErrors)) as caught:
        grouping_of(parse_spec(parse_document(text)))
    assert caught.value.key == key


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "monitor.yaml").write_text(TEXT)
    with pytest.raises(InputError, match=r"trials\.csv.*cannot be read"):
        grouping_of(load_spec(tmp_path / "monitor.yaml"))


@pytest.mark.parametrize("some", [8, 24])
def test_what_is_said_of_an_estimate_counts_groups_and_tells_so(world: Path, some: int) -> None:
    for name, told in (("monitor.yaml", True), ("alone.yaml", False)):
        compiled = compile_spec(load_spec(world / name))
        paths = recordings(world)[: some // 2] + recordings(world)[12 : 12 + some // 2]
        watch = watch_for(compiled)
        model = learn(paths, compiled.spec, compiled.abstraction, watch=watch).model
        found = problem(world, model)
        estimate = choose(model, found.question, found.judged, "ensemble")
        assert ("those of a group count as one" in estimate.reason) is told
        assert estimate.recordings == (some // 2 if told else some)
        assert estimate.with_violations >= 2
        assert estimate.is_chain is (told and estimate.with_violations < 5)
        table = risk_table(estimate_chain(model), *found.question)
        asked = BoundsSpec(kind="clustered", samples=20)
        *_, note = clustered_chain(model, found.question, found.judged, table, asked).remarks
        assert ("recordings (those of a group count as one)" in note) is told


def test_estimates_leave_out_a_group_as_a_whole(world: Path) -> None:
    model = learned(world)
    assert [shard.group for shard in model.shards] == [f"trial=t{seed}" for seed in range(12)] * 2
    found = problem(world, model)
    assert found.recordings == 12 == len(found.clusters)
    times = np.arange(12)
    half = found.sample(times)
    apart = sum(
        int(times[found.clusters.index(shard.cluster)]) * int(shard.transitions[:, 2].sum())
        for shard in model.shards
    )
    assert int(half.model.counts.sum()) == apart
    everything = found.sample(np.ones(12, dtype=np.int64))
    risk = risk_table(estimate_chain(everything.model), *found.question).values
    crossed = cross(found, ("chain", "bayes"), risk)
    assert crossed is not None
    names = [found.clusters[i] for i in crossed.recording.tolist()]
    of = dict(zip(found.clusters, parted(found.clusters, FOLDS), strict=True))
    assert crossed.fold.tolist() == [of[name] for name in names]
    assert len({*of.values()}) == FOLDS


def test_counts_are_those_without_groups_and_groups_travel_with_the_model(
    world: Path, tmp_path: Path
) -> None:
    grouped, alone = learned(world), learned(world, "alone.yaml")
    assert (grouped.counts != alone.counts).nnz == 0 and grouped.digest == alone.digest
    assert grouped.fingerprint != alone.fingerprint
    assert source_of(grouped.shards) != source_of(alone.shards)
    for model in (grouped, alone):
        save_model(model, tmp_path / "model.json")
        back = load_model(tmp_path / "model.json")
        assert back.fingerprint == model.fingerprint
        groups = {shard.recording: shard.group for shard in model.shards}
        assert {shard.recording: shard.group for shard in back.shards} == groups
    assert '"group"' not in (tmp_path / "model.json").read_text()
    assert {shard.group for shard in merge_models([grouped]).shards} == {*groups_of(grouped)}


def groups_of(model: CountModel) -> list[str]:
    return [shard.group for shard in model.shards]


def test_a_store_keeps_no_groups_for_they_may_change(world: Path, tmp_path: Path) -> None:
    store = ShardStore(tmp_path / "store")
    assert not any(groups_of(learned(world, "alone.yaml", store=store)))
    assert learned(world, store=store).fingerprint == learned(world).fingerprint


def test_learn_and_compare_say_and_use_them(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def forewarn(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    config = world / "monitor.yaml"
    code, _, told = forewarn(
        "learn", *recordings(world), "-c", config, "-o", tmp_path / "m.json", "-j1"
    )
    assert code == 0 and "24 recordings in 12 groups of trial" in told
    words = ("compare", config, *recordings(world), "--folds", 3, "--resamples", 2, "-j1", "--json")
    code, said, told = forewarn(*words)
    assert code == 0, told
    # In the order of groups, each of them whole, and dealt out in turn.
    assert json.loads(said)["folds"] == [fold for fold in [0, 1, 2] * 4 for _ in range(2)]
    code, _, told = forewarn("compare", config, *recordings(world), "--folds", 13, "-j1")
    assert code == 2 and "13 folds of 12 groups (accepted: 2 to 12;" in told


def test_a_guarantee_counts_groups_and_wants_groups_that_the_model_does_not_know(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def forewarn(*words: object) -> tuple[int, str, str]:
        code = main([*map(str, words), "-c", str(world / "monitor.yaml"), "-j1"])
        return code, *capsys.readouterr()

    names = [recording.name for recording in recordings(world)]
    old, new, twins = (
        [world / name for name in names if name.startswith(by) and (name[-8:-6] < "06") is known]
        for by, known in (("one", True), ("o", False), ("other", True))
    )
    model = tmp_path / "m.json"
    assert forewarn("learn", *old, "-o", model)[0] == 0
    tune = ("tune", "--false-alarms-per-hour", "3600", "--miss-rate", "0.5", "-m", model)
    code, said, told = forewarn(*tune, *new, "--least-violations", "1", "--json")
    assert code in (0, 1), told
    support = json.loads(said)["properties"]["p"]["support"]
    assert support["runs"] == 6 < len(new) == 12
    assert support["violations"] == 2 * support["trials"] > 0
    for words in (tune, ("learn", *old, "-o", tmp_path / "n.json", "--calibrate")):
        code, _, told = forewarn(*words, *twins)
        assert code == 2
        assert "other00.jsonl" in told
        assert "learned from other recordings of its group 'trial=t0'" in told
    code, _, told = forewarn(*tune, *new, "--blocks", "10")
    assert code == 2 and "learning.group_by: blocks of recordings that belong together" in told
    own, other = ([path for path in new if path.name.startswith(by)] for by in ("one", "other"))
    code, _, told = forewarn("learn", *old, "-o", model, "--calibrate", *own)
    assert code == 0, told
    code, _, told = forewarn(*tune, *other)
    assert code == 2
    assert f"the model {model} was calibrated on other recordings of its group 'trial=t6'" in told


def test_the_group_of_each_recording_is_read_once(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    of = Grouping.of

    def counted(groups: Grouping, recording: Recording) -> str:
        asked[recording.path.name] += 1
        return of(groups, recording)

    monkeypatch.setattr(Grouping, "of", counted)
    one = [path for path in recordings(world) if path.name.startswith("one")]
    old, new = one[:6], one[6:]
    model, same = tmp_path / "m.json", ("-c", world / "monitor.yaml", "-j1")
    for words, read in (
        (("learn", *old, "-o", model, "--calibrate", *new), one),
        (("learn", *old, "-o", model), old),
        (("tune", *new, "-m", model, "--false-alarms-per-hour", "3600"), new),
        (("anomalies", *old, "-m", model, "--calibrate", *new, "--alpha", "0.2"), new),
    ):
        asked.clear()
        assert main([*map(str, words), *map(str, same)]) in (0, 1)
        assert asked == Counter(path.name for path in read)
