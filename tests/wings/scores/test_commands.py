"""Learned scores from recordings to verdicts: learned, merged, replayed, live and in its record."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pytest
from following import MONITOR, write

pytest.importorskip("sklearn", reason="the extra `learn` is not installed")

from forewarn.config.file import load_spec
from forewarn.learning.folds import parted
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import MessageType
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.build import build_monitor, compile_for
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.record import Names, RecordWriter
from forewarn.monitoring.session import Session, run
from forewarn.monitoring.session_events import Start
from forewarn.recordings.by_name import samples_of
from forewarn.recordings.registry import open_recording
from forewarn.wings.scores import score_fit
from monitor_node.composing import ages_at
from monitor_node.explaining import explain

Run = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def few_trees() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_fit, "MOST_TREES", 25)
        patch.setattr(score_fit, "FOLDS", range(5, 17))
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a monitor file, traces to learn from and one that is kept back."""
    folder = tmp_path_factory.mktemp("following")
    write(folder / "train", range(16))
    write(folder / "test", range(100, 102))
    (folder / "monitor.yaml").write_text(MONITOR)
    return folder


@pytest.fixture(scope="module")
def model(world: Path) -> CountModel:
    from forewarn.cli import main

    path = world / "monitor.model.json"
    words = ["learn", world / "train", "-c", world / "monitor.yaml", "-o", path, "-q", "-j1"]
    assert main([str(word) for word in words]) == 0
    return load_model(path)


def test_learning_twice_gives_the_same_bytes_and_tells_of_the_fit(
    forewarn: Run, world: Path, model: CountModel, tmp_path: Path
) -> None:
    traces = sorted((world / "train").glob("*.jsonl"), reverse=True)
    again = tmp_path / "again.json"
    result = forewarn("learn", *traces, "-c", world / "monitor.yaml", "-o", again, "--json", "-j1")
    assert result.code == 0
    back = load_model(again)
    assert back.learned_score == model.learned_score and back.fingerprint == model.fingerprint
    told = json.loads(result.out)["learned_score"]["ahead"]
    assert told["property"] == "keeps_distance"
    assert told["signals"] == ["gap", "speed", "lead", "braking", "closing"]
    assert told["trees"] == len(model.learned_score[0].ensemble.roots)
    assert 0 < told["brier"] < 0.1 and 0.1 < told["pr_area"] <= 1
    assert told["digest"] == model.learned_score[0].digest
    same = tmp_path / "same.json"  # by several processes
    words = ("learn", world / "train", "-c", world / "monitor.yaml", "-o", same, "-j2")
    shown = forewarn(*words).out
    assert same.read_bytes() == (world / "monitor.model.json").read_bytes()
    assert "every recording judged by a fit that did not see it" in shown


def test_states_are_named_after_the_cuts(model: CountModel) -> None:
    cuts = model.learned_score[0].cuts
    names = model.vocabulary.predicates
    assert names == ("close", "fast", *(f"ahead<{cut:g}" for cut in cuts)) and cuts


def test_what_is_counted_of_a_recording_comes_from_trees_that_did_not_see_it(
    world: Path, model: CountModel
) -> None:
    from forewarn.wings.scores.fitting import fit_scores

    spec = load_spec(world / "monitor.yaml")
    traces = sorted((world / "train").glob("*.jsonl"))
    compiled, (fitted,) = fit_scores(compile_for(spec, None), traces)
    assert fitted.fit == model.learned_score[0]
    fit = compiled.abstraction.fitted[0]
    folds = dict(zip(fit.recordings, parted(fit.recordings, len(fit.unseeing)), strict=True))
    for path in traces[:3]:
        with open_recording(path) as recording:
            own = {fit.name: folds[recording.digest()]}
        alone = learn([path], spec, compiled.abstraction).model
        apart = learn([path], spec, compiled.abstraction.without(own)).model
        assert alone.fingerprint == apart.fingerprint
    whole = learn(traces, spec, compiled.abstraction).model
    assert whole.fingerprint == model.fingerprint
    seeing = learn(traces, spec, compile_for(spec, model).abstraction).model
    assert seeing.digest == model.digest and seeing.fingerprint != model.fingerprint


def test_recordings_are_added_to_the_same_fit_only(
    forewarn: Run, world: Path, model: CountModel, tmp_path: Path
) -> None:
    file, config = world / "monitor.model.json", world / "monitor.yaml"
    grown = tmp_path / "grown.json"
    store, anew = tmp_path / "store", "learned scores were fitted again"
    words = ("learn", world / "test", "-c", config, "-o", grown, "--add-to", file, "-j1")
    added = forewarn(*words, "--store", store)
    assert added.code == 0 and anew not in added.err
    both = load_model(grown)
    assert both.learned_score == model.learned_score and both.digest == model.digest
    assert int(both.counts.sum()) > int(model.counts.sum())
    assert (
        len(model.state_source_provenance)
        == len(both.state_source_provenance)
        == 16
        < len(both.provenance)
    )
    other = tmp_path / "other.json"
    traces = sorted((world / "train").glob("*.jsonl"))[:14]
    fitted = forewarn("learn", *traces, "-c", config, "-o", other, "-j1", "--store", store)
    assert fitted.code == 0 and anew in fitted.err
    result = forewarn("merge", file, other, "-o", tmp_path / "merged.json")
    assert result.code == 2 and "learned_score" in result.err and "--add-to" in result.err
    plain = tmp_path / "plain.yaml"
    text = MONITOR.replace("bins: {ahead: auto}\n", "")
    plain.write_text(text[: text.index("learned_score:")] + text[text.index("predicates:") :])
    bare = tmp_path / "bare.json"
    assert forewarn("learn", *traces, "-c", plain, "-o", bare, "-j1").code == 0
    words = ("learn", world / "test", "-c", config, "-o", grown, "--add-to", bare, "-j1")
    result = forewarn(*words)
    assert result.code == 2 and "lacks the learned score 'ahead'" in result.err


def test_counts_of_what_it_was_fitted_to_give_no_sound_bounds(
    forewarn: Run, world: Path, model: CountModel, tmp_path: Path
) -> None:
    config, path = world / "acting.yaml", tmp_path / "acting.json"
    config.write_text(f"{MONITOR}action: \"'brake' if braking else 'go'\"\n")
    compiled = compile_spec(load_spec(config), model.learned_score)
    for folder, sound, told in (
        ("train", False, "2 of the 2 recordings that are counted made the states"),
        ("test", True, "none of the 2 recordings that are counted made the states"),
    ):
        traces = sorted((world / folder).glob("*.jsonl"))[:2]
        save_model(learn(traces, compiled.spec, compiled.abstraction).model, path)
        (found,) = json.loads(forewarn("check", path, "Pmax(close, 20)", "--json").out)["queries"]
        assert found["sound"] == sound and told in " ".join(found["notes"])


def values_of(watch: LiveSession, path: Path, first: int, last: int) -> list[tuple[Any, ...]]:
    found = []
    lines = path.read_text().splitlines()[first:last]
    for line in map(json.loads, lines):
        tick = round(line.pop("t") * 10)
        watch.accept("", tick * 100_000_000, line)
        rows = watch.tick(tick).rows
        found.append((tick, *((row.probability, row.lower, row.state) for row in rows)))
    return found


def test_live_and_replayed_are_the_same_bits(world: Path, model: CountModel) -> None:
    compiled = compile_for(load_spec(world / "monitor.yaml"), model)
    path = world / "test" / "run100.jsonl"
    monitor = build_monitor(compiled, model)
    with open_recording(path) as recording:
        session = Session(monitor, {})
        samples = samples_of(recording, [], by_name=True)
        verdicts = [*run(session, samples, recording.start_ns, recording.end_ns)]
    slot = monitor.abstraction.signals.index("ahead")
    scores = [verdict.values[slot] for verdict in verdicts]
    assert all(0 < score < 1 for score in scores) and len({*scores}) > 20
    live = values_of(LiveSession(compiled, model, {}), path, 0, 400)
    assert [one[1][0] for one in live] == [v.properties[0].probability for v in verdicts]
    # What a tick leaves goes through JSON, and the rest is as if nothing had been between.
    state, rest = monitor.start(), []
    session = Session(monitor, {})
    for line in map(json.loads, path.read_text().splitlines()):
        tick = round(line.pop("t") * 10)
        session.accept("", tick * 100_000_000, line)
        state, verdict = monitor.step(state, session.feed.snapshot(tick))
        rest.append(verdict.values[slot])
        past = json.loads(json.dumps(state.past, allow_nan=False))
        state = state._replace(past=monitor.abstraction.parse_past(past))
    assert rest == scores


def test_the_record_of_a_live_session_replays_to_the_same_bits(
    forewarn: Run,
    corridor_run: Any,
    risk_type: MessageType,
    risk_array: Callable[..., bytes],
    tmp_path: Path,
) -> None:
    config, file = tmp_path / "monitor.yaml", tmp_path / "model.json"
    danger = "learned_score: {ahead: {for: slow_down, history: 0.6}}\n"
    config.write_text(f"{corridor_run.config.read_text()}\n{danger}")
    bags = corridor_run.recordings[0].parent
    assert forewarn("learn", bags, "-c", config, "-o", file, "-j1").code == 0
    model = load_model(file)
    assert model.learned_score[0].moments
    watch = LiveSession(compile_for(load_spec(config), model), model, {})
    with open_recording(corridor_run.held_out) as recording:
        types = {t: i.message_type for t, i in recording.topics.items() if i.message_type}
        watch = LiveSession(compile_for(load_spec(config), model), model, types)
        path = tmp_path / "record.mcap"
        writer = RecordWriter(path, Names.of("/monitor"), config.read_text(), types)
        name, grid = writer.model(model), watch.monitor.clock
        tick = grid.tick_at_or_after(recording.start_ns)
        writer.start(Start("activated", tick, recording.start_ns), name)
        for sample in recording.read():
            while grid.time_ns(tick) < sample.time_ns:
                rows, due = watch.tick(tick).rows, grid.time_ns(tick)
                writer.risk(due, risk_array(risk_type, rows, due), watch.decided)
                tick += 1
            watch.accept(sample.topic, sample.time_ns, sample.data)
            writer.message(sample.topic, sample.time_ns, bytes(sample.data))
        writer.close()
    result = forewarn("verify", path)
    assert result.code == 0, result.text
    assert "600 ticks, all the same bits" in result.out


def test_without_the_extra_learning_names_the_command_and_replay_goes_on(
    forewarn: Run, world: Path, model: CountModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    config = world / "monitor.yaml"
    result = forewarn("learn", world / "train", "-c", config, "-o", tmp_path / "m.json", "-j1")
    assert result.code == 2 and "pip install './forewarn[learn]'" in result.err
    assert not (tmp_path / "m.json").exists()
    assert forewarn("replay", world / "test", "-c", config).code in (0, 1)


def test_the_file_is_valid_before_and_after_it_is_learned(
    forewarn: Run, world: Path, model: CountModel, tmp_path: Path
) -> None:
    result = forewarn("validate", world / "monitor.yaml")
    assert result.code == 0, result.text
    bare = tmp_path / "monitor.yaml"
    bare.write_text(MONITOR)
    result = forewarn("validate", bare)
    assert result.code == 0, result.text
    changed = tmp_path / "changed.yaml"
    changed.write_text(MONITOR.replace("history: 0.5", "history: 0.6"))
    result = forewarn("validate", changed, "-m", world / "monitor.model.json")
    assert (
        result.code == 2
        and "learned_score.ahead.history" in result.out
        and "learn again" in result.out
    )


def test_a_text_in_what_it_is_fitted_from_is_an_error(
    forewarn: Run, world: Path, tmp_path: Path
) -> None:
    for trace in (world / "train").glob("*.jsonl"):
        lines = map(json.loads, trace.read_text().splitlines())
        texts = [json.dumps(line | {"braking": str(line["braking"])}) for line in lines]
        (tmp_path / trace.name).write_text("\n".join(texts))
    config = tmp_path / "monitor.yaml"
    named = "for: keeps_distance, from: [gap, braking],"
    text = MONITOR.replace("for: keeps_distance,", named).replace(", closing: rising", "")
    config.write_text(text)
    words = ("learn", tmp_path, "-c", config, "-o", tmp_path / "m.json", "-j1")
    result = forewarn(*words)
    assert (
        result.code == 2
        and "learned_score.ahead.from[1]" in result.err
        and "'braking'" in result.err
    )
    config.write_text(MONITOR)
    result = forewarn(*words)
    assert result.code == 0 and "never known: braking" in result.err


def test_recordings_without_a_violation_say_what_is_needed(
    forewarn: Run, world: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR.replace("gap < 2", "gap < -1"))
    words = ("learn", world / "train", "-c", config, "-o", tmp_path / "m.json", "-j1")
    result = forewarn(*words)
    assert result.code == 2 and "learned_score.ahead.for" in result.err
    assert "0 of 16 recordings" in result.err and "at least two violations" in result.err


def test_a_score_tells_dangerous_moments_it_has_not_seen(world: Path, model: CountModel) -> None:
    compiled = compile_for(load_spec(world / "monitor.yaml"), model)
    monitor = build_monitor(compiled, model)
    slots = [monitor.abstraction.signals.index(name) for name in ("ahead", "gap")]
    scores: list[list[float]] = []
    for path in sorted((world / "test").glob("*.jsonl")):
        with open_recording(path) as recording:
            samples = samples_of(recording, [], by_name=True)
            session = Session(monitor, {})
            verdicts = run(session, samples, recording.start_ns, recording.end_ns)
            scores += ([verdict.values[slot] for slot in slots] for verdict in verdicts)
    learned_score, gap = np.array(scores).T
    assert learned_score[gap < 4].mean() > 3 * learned_score[gap > 8].mean()


def test_evidence_tells_what_pushes_the_score(world: Path, model: CountModel) -> None:
    compiled = compile_for(load_spec(world / "monitor.yaml"), model)
    watch = LiveSession(compiled, model, {})
    told = []
    for path in sorted((world / "train").glob("*.jsonl"))[:4]:
        watch.end()
        for line in map(json.loads, path.read_text().splitlines()):
            tick = round(line.pop("t") * 10)
            watch.accept("", tick * 100_000_000, line)
            result = watch.tick(tick)
            if result.request is not None and result.request.evidence:
                told.append((result, result.request.evidence[-1]))
            row = result.rows[0]
            ages = ages_at(watch, result.verdict)
            past = watch.memory.state.past
            text = explain(watch.monitor, result.verdict, ages, row, past=past).text
            assert " ahead is " in text
    assert told
    slot = watch.monitor.abstraction.signals.index("ahead")
    for result, fact in told:
        assert fact.startswith(
            f"ahead is {result.verdict.values[slot]:.3g}; its log-odds are moved"
        )
    assert any("gap +" in fact or "closing +" in fact or "lead +" in fact for _, fact in told)


def test_what_was_read_for_one_fold_serves_another(
    world: Path, model: CountModel, tmp_path: Path
) -> None:
    from forewarn.wings.scores.fitting import fit_scores

    compiled = compile_for(load_spec(world / "monitor.yaml"), None)
    traces = [Path(copy(path, tmp_path)) for path in sorted((world / "train").glob("*.jsonl"))]
    read: dict[Path, Any] = {}
    fit_scores(compiled, traces[2:], read=read)
    for path in traces[2:]:
        path.unlink()
    _, (fitted,) = fit_scores(compiled, traces, read=read)
    assert fitted.fit == model.learned_score[0] and {*read} == {*traces}


@pytest.mark.slow
def test_folds_are_judged_by_scores_that_did_not_see_them(
    forewarn: Run, world: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR)
    plain = tmp_path / "plain.yaml"
    text = MONITOR.replace("bins: {ahead: auto}", "bins: {gap: [4, 6, 8]}")
    plain.write_text(text[: text.index("learned_score:")] + text[text.index("predicates:") :])
    traces = sorted((world / "train").glob("*.jsonl"))
    words = ("compare", config, plain, *traces, "--folds", "2", "--json", "--resamples", "20")
    result = forewarn(*words)
    assert result.code == 0, result.text
    rows = json.loads(result.out)["properties"]["keeps_distance"]
    assert len(rows) == 2
    # What the file says now counts, not what a model of it was fitted with before.
    stale = MONITOR.replace("history: 0.5", "history: 0.6")
    config.write_text(stale.replace("monitor.model.json", str(world / "monitor.model.json")))
    budget = ("--false-alarms-per-hour", "40", "--json")
    result = forewarn("tune", *traces, "-c", config, "--folds", "2", *budget)
    assert result.code in (0, 1), result.text
    blocks = ("--folds", "2", "--blocks", "5", *budget)
    result = forewarn("tune", *traces, "-c", config, *blocks)
    assert result.code == 2 and "--folds" in result.err


def test_what_is_learned_online_keeps_the_fit(world: Path, model: CountModel) -> None:
    compiled = compile_for(load_spec(world / "monitor.yaml"), model)
    learner = OnlineLearner(compiled, model)
    monitor = build_monitor(compiled, model)
    with open_recording(world / "test" / "run100.jsonl") as recording:
        samples = samples_of(recording, [], by_name=True)
        session = Session(monitor, {})
        for verdict in run(session, samples, recording.start_ns, recording.end_ns):
            learner.observe(verdict.tick, verdict.observation, intervened=False)
    grown = learner.later()()
    assert grown.learned_score == model.learned_score and grown.counts.sum() > model.counts.sum()
    assert build_monitor(compiled, grown).model is not None


def test_a_stack_takes_the_score_in(forewarn: Run, world: Path, tmp_path: Path) -> None:
    config, file = tmp_path / "monitor.yaml", tmp_path / "model.json"
    stacked = "horizon: 2.0, estimator: ensemble, scores: [ahead]"
    config.write_text(MONITOR.replace("horizon: 2.0", stacked).replace("bins: {ahead: auto}", ""))
    assert forewarn("learn", world / "train", "-c", config, "-o", file, "-j1").code == 0
    result = forewarn("replay", world / "test", "-c", config, "-m", file, "--json")
    assert result.code in (0, 1), result.text


def test_inspect_explain_and_the_report_say_what_decides(
    forewarn: Run, world: Path, model: CountModel, tmp_path: Path
) -> None:
    config, file, page = world / "monitor.yaml", world / "monitor.model.json", tmp_path / "r.html"
    shares = model.learned_score[0].shares
    words = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    said = "ahead foresees keeps_distance: "
    assert said in " ".join(forewarn("inspect", file).out.split())
    told = json.loads(forewarn("inspect", file, "--json").out)["learned_score"]["ahead"]
    assert told["shares"] == pytest.approx(shares)
    explained = " ".join(forewarn("explain", "-c", config).out.split())
    assert said in explained and f"decided by {words}" in explained
    assert forewarn("report", world / "test", "-c", config, "-o", page).code == 0
    assert words in page.read_text()
