"""The model file: versioned JSON, checked as a whole before anything in it is used."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.files.inputs import open_plain
from forewarn.files.outputs import OutputFile, check_output, write_output
from forewarn.models import calibration_map as recalibration
from forewarn.models import estimates, hierarchical_prior, shards
from forewarn.models.checked_json import (
    MAX_BYTES,
    MAX_CHILDREN,
    Reader,
    begin_of,
    parse_json,
    read_json,
)
from forewarn.models.counts import (
    ALPHA_ACCEPTED,
    CountModel,
    Provenance,
    Smoothing,
    state_order,
    with_states,
)
from forewarn.models.process import add_up, dump_steps, parse_steps
from forewarn.registry import model_section, model_sections
from forewarn.states.interface import PREDICATES, StateSpace
from forewarn.states.learned_signal import SECTION

if TYPE_CHECKING:
    from forewarn.config.fields import Rate

FORMAT = "forewarn-model"
VERSION = 1
RECALIBRATION = "recalibration"
KEYS = frozenset(
    (
        *("format", "version", "digest", "rate", "space", "predicates", "terminals", "smoothing"),
        *("end", "intervened", "provenance", "states", "starts", "transitions", "forbidden"),
        *(
            "actions",
            "state_source_recordings",
            RECALIBRATION,
            "judged",
            "shards",
            "estimates",
        ),
        *("hierarchical_prior", "checksum"),
    )
)
MAX_STATES = 1 << 17
MAX_COUNT = 1 << 40
MAX_RECORDINGS = 1 << 21
MAX_CHOICES = 1 << 20
"""States with an action each: what a model file may say of actions."""

Items = Callable[[], Iterable[Any]]
"""Gives the items of a list of the file, from the first, each time."""
_BEGIN = 1024


def save_model(model: CountModel, path: Path | str) -> None:
    """Write `model` to `path`, replacing what is there only once all is written.

    If the name ends with ``.gz``, the file is packed by gzip; the same model gives the same bytes.

    Raises ModelError if the file cannot be written.
    """
    text = dump_model(model)
    if Path(path).suffix != ".gz":
        write_output(path, text, ModelError)
        return
    with OutputFile(path, ModelError) as file:
        file.write_bytes(gzip.compress(text.encode(), mtime=0))


def check_replaceable(path: Path, kind: str = FORMAT, noun: str = "model file") -> None:
    """Refuse a place for a file of a format that another kind of file has taken.

    Raises InputError if something is there that is not of the format, or nothing can be written
    there.
    """
    check_output(path)
    accepted = f"a name that is free, or a {noun}"
    try:
        with open_plain(path) as file:
            begin = begin_of(file.read(_BEGIN))
    except FileNotFoundError:
        return
    except OSError as error:
        raise ModelError(
            f"cannot be replaced: {error.strerror}", accepted=accepted, file=path
        ) from error
    if not re.match(rb'\s*\{\s*"format"\s*:\s*"%s"' % kind.encode(), begin):
        raise ModelError(f"is no {noun}, and is not written over", accepted=accepted, file=path)


def load_model(path: Path | str, most: int = MAX_BYTES) -> CountModel:
    """Read a model file, of at most `most` bytes.

    Raises ModelError if the file cannot be read, is cut short or damaged, has another version, or
    holds values that no model has; the message names file, key path, value and what is accepted.
    """
    try:
        return _parse(Reader(read_json(path, most), ""))
    except ModelError as error:
        if error.file is None:
            raise error.located(file=path) from error
        raise


def parse_model(data: bytes) -> CountModel:
    """Return the model whose file would hold `data`; raises ModelError as `load_model` does."""
    return _parse(Reader(parse_json(data), ""))


def merge_models(models: Iterable[CountModel]) -> CountModel:
    """Add up the counts of models of one abstraction.

    Maps that calibrate risks, what risks are made of, and what is borrowed from others are left
    out: they were fitted to one of the models alone.

    Raises ModelError if there is none, or two differ in abstraction, rate, names, end rule or in
    what they forbid.
    """
    parts = list(models)
    if not parts:
        raise ModelError("no model to merge", accepted="at least one")
    first = parts[0]
    for other in parts[1:]:
        _check_same(first, other)
    states = state_order(state for part in parts for state in part.states)
    wide = [with_states(part, states) for part in parts]
    forbidden = wide[0].forbidden
    for part in wide[1:]:
        forbidden = forbidden + part.forbidden
    return replace(
        wide[0],
        counts=sparse.csr_matrix(sum(part.counts for part in wide[1:]) + wide[0].counts),
        starts=np.sum([part.starts for part in wide], axis=0).astype(np.int64),
        forbidden=sparse.csr_matrix(forbidden, dtype=bool),
        provenance=tuple(origin for part in parts for origin in part.provenance),
        intervened=sum(part.intervened for part in parts),
        recalibration=(),
        steps=add_up(part.steps for part in parts),
        state_source_recordings=tuple(
            sorted({mark for part in parts for mark in part.state_source_recordings})
        ),
        shards=tuple(shard for part in wide for shard in part.shards),
        estimates=(),
        hierarchical_prior=None,
        sections=_joined_sections(parts),
    )


def _joined_sections(models: Sequence[CountModel]) -> dict[str, tuple[Any, ...]]:
    """Return what wings and other packages keep of models that are merged."""
    keys = dict.fromkeys(key for model in models for key in model.sections)
    found = {key: [m.sections[key] for m in models if m.sections.get(key)] for key in keys}
    return {
        key: some[0] if len(some) == 1 else model_section(key).joined(some)
        for key, some in found.items()
        if some
    }


def canonical(model: CountModel) -> CountModel:
    """Return `model` as it is in whatever order its recordings were read and merged."""
    tidy = with_states(model, state_order(model.states))
    return replace(
        tidy,
        provenance=tuple(sorted(model.provenance, key=astuple)),
        shards=tuple(sorted(tidy.shards, key=lambda shard: shard.recording)),
    )


def _check_same(first: CountModel, other: CountModel) -> None:
    pairs: list[tuple[str, object, object]] = [
        ("rate", first.rate, other.rate),
        # Before the predicates, which may be cuts of a score.
        (SECTION, _fits(first), _fits(other)),
        ("space.kind", first.vocabulary.kind, other.vocabulary.kind),
        ("predicates", first.vocabulary.predicates, other.vocabulary.predicates),
        ("terminals", first.vocabulary.terminals, other.vocabulary.terminals),
        ("end", first.end, other.end),
        ("smoothing", first.smoothing, other.smoothing),
        # Last: it tells that something differs, and not what.
        ("digest", first.digest[:12], other.digest[:12]),
    ]
    for key, ours, theirs in pairs:
        if ours != theirs:
            if isinstance(ours, tuple) and isinstance(theirs, tuple) and {*ours} != {*theirs}:
                own = [name for name in ours if name not in theirs]
                ours, theirs = own, [name for name in theirs if name not in ours]
            raise ModelError(
                f"models of different {key} cannot be merged: {ours!r} and {theirs!r}",
                accepted="models with the same fit: `forewarn learn --add-to` takes it over"
                if key == SECTION
                else "models learned with the same monitor file",
                key=key,
            )


def _fits(model: CountModel) -> tuple[str, ...]:
    return tuple(f"{fit.name} {fit.digest[:12]}" for fit in model.learned_score)


def dump_model(model: CountModel) -> str:
    """Return the text of the model file of `model`."""
    space = model.vocabulary
    other = space.kind != PREDICATES
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "digest": model.digest,
        "rate": model.rate,
        **({"space": {"kind": space.kind, **space.content()}} if other else {}),
        "predicates": list(space.predicates),
        "terminals": list(space.terminals),
        "smoothing": asdict(model.smoothing),
        "end": model.end,
        "intervened": model.intervened,
    }
    forbidden = _dump_forbidden(model.forbidden)
    # Made as they are written: a collection that goes through millions of items holds all threads.
    lists: dict[str, Items] = {
        "provenance": lambda: (asdict(origin) for origin in model.provenance),
        "states": lambda: (model.vocabulary.key(state) for state in model.states),
        "starts": lambda: ([int(i), int(model.starts[i])] for i in np.flatnonzero(model.starts)),
        "transitions": lambda: _dump_counts(model.counts),
        "forbidden": lambda: forbidden,
    }
    if model.steps:
        steps = dump_steps(model.steps, model.vocabulary)
        lists["actions"] = lambda: steps
    if model.state_source_recordings:
        lists["state_source_recordings"] = lambda: model.state_source_recordings
    for key, values in model.sections.items():
        if values:
            lists[key] = partial(list, model_section(key).dump(values))
    if model.recalibration:
        maps = recalibration.dump(model.recalibration)
        lists[RECALIBRATION] = lambda: maps
    if model.shards:
        judged = shards.judged_in(model.shards)
        lists["judged"] = lambda: shards.dump_judged(judged)
        lists["shards"] = lambda: (shards.dump(shard, judged) for shard in model.shards)
    if model.estimates:
        chosen = estimates.dump(model.estimates)
        lists["estimates"] = lambda: chosen
    if model.hierarchical_prior is not None:
        others = [
            hierarchical_prior.dump(
                model.hierarchical_prior, list(_dump_counts(model.hierarchical_prior.counts))
            )
        ]
        lists["hierarchical_prior"] = lambda: others
    checksum = _checksum({**head, **lists})
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, items in lists.items():
        body = ",\n".join(f"    {json.dumps(element)}" for element in items())
        lines.append(f'  "{key}": [\n{body}\n  ]' if body else f'  "{key}": []')
    lines.append(f'  "checksum": "{checksum}"')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dump_counts(counts: sparse.csr_matrix) -> Iterator[list[Any]]:
    tidy = counts.copy()
    tidy.sum_duplicates()
    tidy.eliminate_zeros()
    for i in np.flatnonzero(np.diff(tidy.indptr)):
        part = slice(tidy.indptr[i], tidy.indptr[i + 1])
        yield [int(i), tidy.indices[part].tolist(), tidy.data[part].tolist()]


def _dump_forbidden(forbidden: sparse.csr_matrix) -> list[list[Any]]:
    """Rows with the same forbidden successors share one entry ``[rows, successors]``."""
    groups: dict[tuple[int, ...], list[int]] = {}
    tidy = forbidden.copy()
    tidy.eliminate_zeros()
    tidy.sort_indices()
    for i in np.flatnonzero(np.diff(tidy.indptr)):
        columns = tuple(tidy.indices[tidy.indptr[i] : tidy.indptr[i + 1]].tolist())
        groups.setdefault(columns, []).append(int(i))
    return [[rows, list(columns)] for columns, rows in groups.items()]


def _checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the compact JSON of `content`, its keys sorted; see `Items`."""
    # Item by item: one call for all of a large model holds the interpreter, in whatever thread.
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
    digest = hashlib.sha256()
    for i, (key, value) in enumerate(sorted(content.items())):
        digest.update(f"{',' if i else '{'}{encode(key)}:".encode())
        if callable(value) or isinstance(value, list):
            digest.update(b"[")
            for k, element in enumerate(value() if callable(value) else value):
                digest.update(f"{',' if k else ''}{encode(element)}".encode())
            digest.update(b"]")
        else:
            digest.update(encode(value).encode())
    digest.update(b"}" if content else b"{}")
    return digest.hexdigest()


def _space(reader: Reader) -> StateSpace:
    content = reader.child("space")
    kind = content.text("kind")
    own = {key: value for key, value in content.value.items() if key != "kind"}
    return reader.space(kind, Reader(own, content.path))


def _grown(reader: Reader) -> tuple[str, ...]:
    found = (
        reader.items("state_source_recordings", MAX_COUNT)
        if "state_source_recordings" in reader.value
        else []
    )
    for i, mark in enumerate(found):
        if not isinstance(mark, str) or not mark:
            raise ModelError(
                f"{mark!r} is no digest",
                accepted="the beginning of one",
                key=f"state_source_recordings[{i}]",
            )
    return tuple(found)


def _rate(reader: Reader) -> Rate:
    if reader.value.get("rate") == "steps":
        return "steps"
    return reader.number("rate")


def _parse(reader: Reader) -> CountModel:
    reader.expect("format", FORMAT)
    version = reader.integer("version", 1, 1 << 30)
    if version != VERSION:
        raise ModelError(
            f"version {version} is not known", accepted=f"version {VERSION}", key="version"
        )
    # Who does not know a key must not take the rest for all that the model says.
    known = {*KEYS, *model_sections()}
    for key in reader.value:
        if key not in known:
            raise ModelError("unknown key", accepted=", ".join(sorted(known)), key=key)
    content = {k: v for k, v in reader.value.items() if k != "checksum"}
    if reader.text("checksum") != _checksum(content):
        raise ModelError(
            "the checksum does not fit the content: the file is damaged or was edited",
            accepted="a file as `forewarn learn` or `forewarn merge` wrote it",
            key="checksum",
        )
    vocabulary = _space(reader) if "space" in reader.value else reader.space(PREDICATES)
    states = reader.states(vocabulary, MAX_STATES)
    n = len(states)
    smoothing = reader.child("smoothing")
    steps = _optional(reader, "actions", MAX_CHOICES)
    provenance = tuple(map(parse_provenance, reader.children("provenance", MAX_RECORDINGS)))
    starts = np.zeros(n, dtype=np.int64)
    for index, count in reader.pairs("starts", n, MAX_COUNT):
        starts[index] = count
    return CountModel(
        vocabulary=vocabulary,
        rate=_rate(reader),
        digest=reader.text("digest"),
        states=states,
        counts=reader.counts("transitions", n, MAX_COUNT),
        starts=starts,
        smoothing=Smoothing(
            smoothing.get("alpha", ALPHA_ACCEPTED),
            smoothing.choice("candidates", ("observed", "admissible")),
        ),
        forbidden=reader.forbidden("forbidden", n),
        provenance=provenance,
        intervened=reader.integer("intervened", 0, MAX_COUNT),
        end=reader.choice("end", ("drop", "absorb")),
        recalibration=recalibration.parse(_optional(reader, RECALIBRATION)),
        steps=parse_steps(steps, vocabulary, MAX_COUNT),
        state_source_recordings=_grown(reader),
        shards=_shards(reader, n),
        sections={
            key: model_section(key).parse(reader.children(key, MAX_CHILDREN))
            for key in reader.value
            if key not in KEYS
        },
        estimates=estimates.parse(_optional(reader, "estimates")),
        hierarchical_prior=_borrowed(reader, n),
    )


def _borrowed(reader: Reader, n: int) -> hierarchical_prior.HierarchicalPrior | None:
    found = _optional(reader, "hierarchical_prior")
    return hierarchical_prior.parse(found[0], n) if found else None


def parse_provenance(reader: Reader) -> Provenance:
    """Return one recording that a model was learned from."""
    return Provenance(
        recording=reader.text("recording"),
        digest=reader.text("digest"),
        duration=reader.number("duration"),
        ticks=reader.integer("ticks", 0, MAX_COUNT),
        transitions=reader.integer("transitions", 0, MAX_COUNT),
    )


def _optional(reader: Reader, key: str, most: int = MAX_CHILDREN) -> list[Reader]:
    return reader.children(key, most) if key in reader.value else []


def _shards(reader: Reader, n: int) -> tuple[shards.Shard, ...]:
    kept = _optional(reader, "shards", MAX_RECORDINGS)
    return shards.parse(kept, _optional(reader, "judged"), n)
