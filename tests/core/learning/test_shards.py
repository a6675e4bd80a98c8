"""Shards in a store: the same bits from anywhere, and nothing computed twice."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.assessment.outcome_counts import PropertyObservers, watch_for
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import InputError, ModelError, RecordingError
from forewarn.learning.executors import Executor, local
from forewarn.learning.pipeline import Learned, Sum, learn
from forewarn.learning.recording_report import ObservedOutcomes, RecordingReport
from forewarn.learning.shard_files import pack, unpack
from forewarn.learning.shard_key import ShardQuery, question_digest
from forewarn.learning.shard_store import ShardStore
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.file import save_model
from forewarn.models.process import Step

TEXT = """
rate: 10
signals: {{x: {{timeout: 0.1}}}}
predicates: {{high: x > 0}}
terminal: {{over: x > {over}}}
properties:
  p:
    formula: always(not over)
    horizon: {horizon}
    estimator: multi_step
    thresholds: {{act: {act}}}
learning: {{recording_end: {end}}}
"""


def compiled(
    over: float = 2.5, horizon: int = 1, act: float = 0.5, end: str = "drop"
) -> CompiledSpec:
    text = TEXT.format(over=over, horizon=horizon, act=act, end=end)
    return compile_spec(parse_spec(parse_document(text)))


def traces(folder: Path, number: int, begin: int = 0) -> list[Path]:
    found = []
    for seed in range(begin, begin + number):
        draw = random.Random(seed)
        rows = [
            {"t": k / 10, "x": draw.gauss(0, 1), "action": draw.choice(["go", "brake"])}
            for k in range(80)
        ]
        path = folder / f"{seed}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found.append(path)
    return found


def learned(
    paths: list[Path],
    store: Path | None = None,
    spec: CompiledSpec | None = None,
    executor: Executor | None = None,
) -> Learned:
    spec = spec or compiled()
    return learn(
        paths,
        spec.spec,
        spec.abstraction,
        watch=watch_for(spec),
        executor=executor,
        store=None if store is None else ShardStore(store),
    )


def written(found: Learned, path: Path) -> bytes:
    save_model(found.model, path)
    return path.read_bytes()


def files(store: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


def test_a_store_gives_the_bits_that_recordings_gave(tmp_path: Path) -> None:
    paths, store = traces(tmp_path, 3), tmp_path / "store"
    plain = learned(paths)
    first, again = learned(paths, store), learned(paths, store)
    assert (first.kept, again.kept) == (0, 3)
    assert repr(first.reports) == repr(again.reports) == repr(plain.reports)
    model = written(plain, tmp_path / "plain.json")
    assert written(first, tmp_path / "first.json") == model
    assert written(again, tmp_path / "again.json") == model
    assert list(again.triples.items()) == list(plain.triples.items())


def test_processes_write_the_same_shards_and_models(tmp_path: Path) -> None:
    paths = traces(tmp_path, 4)
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    model = written(learned(paths, alone), tmp_path / "alone.json")
    found = learned(paths, shared, executor=local(2))
    assert written(found, tmp_path / "shared.json") == model
    assert {p.relative_to(alone): b for p, b in files(alone).items()} == {
        p.relative_to(shared): b for p, b in files(shared).items()
    }


def test_another_recording_costs_that_recording_and_one_less_costs_the_sum(tmp_path: Path) -> None:
    paths, store = traces(tmp_path, 3), tmp_path / "store"
    learned(paths[:2], store)
    more = learned(paths, store)
    assert more.kept == 2
    less = learned([paths[0], paths[2]], store)
    assert less.kept == 2
    assert written(less, tmp_path / "a.json") == written(
        learned([paths[0], paths[2]]), tmp_path / "b.json"
    )
    assert len(files(store)) == 3


def test_the_order_of_recordings_changes_no_count(tmp_path: Path) -> None:
    paths = traces(tmp_path, 4)
    one, other = learned(paths).model, learned(paths[::-1], tmp_path / "store").model
    assert one.states == other.states and one.steps == other.steps
    assert (one.counts != other.counts).nnz == 0 and (one.starts == other.starts).all()
    assert sorted(one.provenance, key=repr) == sorted(other.provenance, key=repr)


def test_a_renamed_recording_keeps_its_shard_and_has_its_new_name(tmp_path: Path) -> None:
    (path,), store = traces(tmp_path, 1), tmp_path / "store"
    learned([path], store)
    found = learned([path.rename(tmp_path / "other.jsonl")], store)
    assert found.kept == 1
    assert [source.recording for source in found.model.provenance] == ["other.jsonl"]


def damaged(data: bytes) -> list[bytes]:
    return [b"", data[:-1], data[:40], data[:-3] + bytes([data[-3] ^ 1]) + data[-2:], b"x" + data]


@pytest.mark.parametrize("kind", ["a pipe", "an endless file"])
def test_what_is_no_shard_is_read_no_further_than_a_shard_may_be_long(
    tmp_path: Path, kind: str
) -> None:
    paths, store = traces(tmp_path, 1), tmp_path / "store"
    learned(paths, store)
    (path,) = files(store)
    path.unlink()
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)  # takes no space on the disk
    with pytest.raises(InputError, match="pipe" if kind == "a pipe" else "is no shard"):
        ShardStore(store).get(path.parent.name + path.stem)


@pytest.mark.parametrize("way", range(5))
def test_a_damaged_shard_is_named_and_computed_again(tmp_path: Path, way: int) -> None:
    paths, store = traces(tmp_path, 2), tmp_path / "store"
    model = written(learned(paths, store), tmp_path / "a.json")
    whole = files(store)
    broken = min(whole)
    broken.write_bytes(damaged(whole[broken])[way])
    found = learned(paths, store)
    (problem,) = found.problems
    assert str(broken) in problem and "computed again" in problem
    assert written(found, tmp_path / "b.json") == model
    assert files(store) == whole
    assert learned(paths, store).problems == ()


def test_a_draft_that_a_killed_process_left_is_nobodys_shard(tmp_path: Path) -> None:
    paths, store = traces(tmp_path, 1), tmp_path / "store"
    learned(paths, store)
    (path,) = files(store)
    draft = path.rename(path.with_name(f".{path.name}.1.tmp"))
    found = learned(paths, store)
    assert found.kept == 0 and found.problems == ()
    assert files(store).keys() == {path, draft}


def test_a_store_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    paths, store = traces(tmp_path, 2), tmp_path / "store"
    store.write_text("a file")
    found = learned(paths, store)
    assert len(found.problems) == 4 and str(store) in found.problems[0]
    assert written(found, tmp_path / "a.json") == written(learned(paths), tmp_path / "b.json")


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"over": 2.0}, False),
        ({"horizon": 2}, False),
        ({"end": "absorb"}, False),
        ({"act": 0.7}, True),
    ],
)
def test_the_address_says_all_that_counts_depend_on(change: dict[str, float], same: bool) -> None:
    def address(spec: CompiledSpec) -> str:
        return question_digest(ShardQuery(spec.spec, spec.abstraction, watch=watch_for(spec)))

    assert (address(compiled()) == address(compiled(**change))) is same  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "same"),
    [({"horizon": 2}, True), ({"formula": "always(high implies not over)"}, False)],
)
def test_how_runs_end_depends_on_formulas_alone(change: dict[str, Any], same: bool) -> None:
    """Where no estimate asks what followed, other thresholds and horizons cost no reading."""

    def address(formula: str = "always(not over)", horizon: int = 1) -> str:
        text = TEXT.format(over=2.5, horizon=horizon, act=0.5, end="drop")
        text = text.replace("multi_step", "chain").replace("always(not over)", formula)
        spec = compile_spec(parse_spec(parse_document(text)))
        watch = PropertyObservers(spec)
        return question_digest(ShardQuery(spec.spec, spec.abstraction, watch=watch))

    assert (address() == address(**change)) is same  # type: ignore[arg-type]


def test_a_changed_map_asks_anew(tmp_path: Path) -> None:
    area = tmp_path / "map.yaml"
    area.write_text("zones:\n- {polygon: [[0, 0], [1, 0], [1, 1]]}\n")
    text = """
rate: 10
signals: {x: {}}
shapes: {zone: {file: map.yaml, layer: zones}}
predicates: {high: x > 0}
properties: {p: {formula: always(not high)}}
"""
    spec = parse_spec(parse_document(text)).model_copy(update={"file": tmp_path / "monitor.yaml"})
    abstraction = compiled().abstraction
    before = question_digest(ShardQuery(spec, abstraction))
    assert question_digest(ShardQuery(spec, abstraction)) == before
    area.write_text("zones:\n- {polygon: [[0, 0], [2, 0], [1, 1]]}\n")
    assert question_digest(ShardQuery(spec, abstraction)) != before


def test_an_unreadable_recording_is_an_error_or_left_out_by_choice(tmp_path: Path) -> None:
    paths = traces(tmp_path, 3)
    paths[1].write_text('{"t": 0, "x": \n')
    spec = compiled()
    for jobs in (1, 2):
        with pytest.raises(RecordingError, match=r"1\.jsonl"):
            learn(paths, spec.spec, spec.abstraction, executor=local(jobs))
        left: dict[Path, RecordingError] = {}
        executor = local(jobs, left.__setitem__)
        found = learn(paths, spec.spec, spec.abstraction, executor=executor)
        assert [*left] == [paths[1]]
        names = [report.provenance.recording for report in found.reports]
        assert names == ["0.jsonl", "2.jsonl"]


def test_counts_that_are_not_kept_apart_give_the_same_model(tmp_path: Path) -> None:
    paths, spec = traces(tmp_path, 3), compiled()
    for watch in (None, watch_for(spec)):
        whole, summed = (
            learn(paths, spec.spec, spec.abstraction, watch=watch, per_recording=per_recording)
            for per_recording in (True, False)
        )
        for name, one in (("whole", whole), ("summed", summed)):
            save_model(one.model, tmp_path / name)
        assert (tmp_path / "whole").read_bytes() == (tmp_path / "summed").read_bytes()
        assert whole.triples == summed.triples
        assert not any(report.counts.triples for report in summed.reports)
        total = Sum(spec.spec, spec.abstraction, spec.abstraction.validity(spec.spec))
        total.add(whole.reports[0])
        with pytest.raises(ValueError, match="not kept per recording"):
            total.add(summed.reports[1])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RecordingReport:
    (path,) = traces(tmp_path_factory.mktemp("one"), 1)
    return learned([path]).reports[0]


@given(
    codes=st.lists(st.integers(-5, 1 << 90), min_size=2, max_size=2),
    texts=st.lists(st.text(max_size=20), max_size=4, unique=True),
    number=st.integers(0, 1 << 40),
)
def test_what_is_packed_comes_back(
    report: RecordingReport, codes: list[int], texts: list[str], number: int
) -> None:
    given_ = replace(
        report,
        warnings=tuple(texts),
        failures=Counter(dict.fromkeys(texts, number)),
        counts=report.counts._replace(
            transitions=Counter({(codes[0], codes[1]): number}),
            steps=Counter({Step(text, True, *codes): number for text in texts}),
        ),
    )
    data = pack(given_)
    found = unpack(data)
    assert pack(found) == data
    assert found.counts == given_.counts and found.provenance == given_.provenance
    assert (found.failures, found.warnings) == (given_.failures, given_.warnings)
    assert isinstance(found.watched, ObservedOutcomes) and given_.watched is not None
    assert tuple(found.watched.codes) == tuple(given_.watched.codes)
    assert found.watched.outcomes.keys() == given_.watched.outcomes.keys()
    assert next(iter(found.counts.transitions)) == (codes[0], codes[1])


def test_no_other_bytes_are_a_shard(report: RecordingReport) -> None:
    data = pack(report)
    for place in range(0, len(data), 7):
        with pytest.raises(ModelError):
            unpack(data[:place] + bytes([data[place] ^ 0x20]) + data[place + 1 :])
