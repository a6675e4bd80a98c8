"""What every kind of states has to keep to; its tests inherit `StateSpaceContract`.

Brute force is the oracle: a tick with unknown values agrees with every tick in which values stand
in their place, so what is known of it must be what all of those have in common.
"""

from __future__ import annotations

import itertools
import json
import pickle
import random
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from forewarn.assessment.lines import verdict_line
from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ModelError
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.file import dump_model, load_model, parse_model, save_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession
from forewarn.recordings.registry import open_recording
from forewarn.signals.snapshots import Snapshot
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Admission, StateSpace, is_terminal, terminal_code
from forewarn.states.kinds import parse_states

Row = tuple[Any, ...]
RUNS = 60


def compiled_from(text: str) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(text)))


class StateSpaceContract:
    """Laws of `StateSpace`, `Abstraction` and `Admission`.

    Attributes
    ----------
    text : str
        A monitor file at 10 Hz; its source signals come by name.
    values : dict
        For each of them, values that reach every case.
    keys : list of str
        The keys of all admissible states, as model files have them for good, in order of codes.
    same, other : dict
        What may be replaced in the file without, and with, another meaning of the states.
    """

    text: ClassVar[str]
    values: ClassVar[dict[str, list[Any]]]
    keys: ClassVar[list[str]]
    same: ClassVar[dict[str, str]]
    other: ClassVar[dict[str, str]]

    @cached_property
    def compiled(self) -> CompiledSpec:
        return compiled_from(self.text)

    @property
    def abstraction(self) -> Abstraction:
        return self.compiled.abstraction

    @property
    def space(self) -> StateSpace:
        return self.abstraction.vocabulary

    @cached_property
    def admission(self) -> Admission:
        return self.abstraction.validity(self.compiled.spec)

    @property
    def labels(self) -> list[int]:
        return [terminal_code(i) for i in range(len(self.space.terminals))]

    @property
    def codes(self) -> list[int]:
        return [*self.admission.states(), *self.labels]

    def runs(self, *, unknown: bool = True) -> Iterator[tuple[Row, ...]]:
        """Yield runs of up to three ticks, with or without unknown values."""
        draw = random.Random(5)
        rows = list(
            itertools.product(*((*some, None) if unknown else some for some in self.domain()))
        )
        yield from ((row,) for row in rows)
        yield from (tuple(draw.choices(rows, k=draw.choice((2, 3)))) for _ in range(RUNS))

    def domain(self) -> list[list[Any]]:
        return [self.values[source.name] for source in self.abstraction.sources]

    def completions(self, row: Row) -> list[Row]:
        options = ([x] if x is not None else xs for x, xs in zip(row, self.domain(), strict=True))
        return list(itertools.product(*options))

    def observed(self, run: tuple[Row, ...]) -> Any:
        return self.played(run)[-1]

    def played(self, run: tuple[Row, ...]) -> list[Any]:
        found, previous = [], None
        for tick, row in enumerate(run):
            seen = self.abstraction.observe(Snapshot(tick, row), previous)
            previous = seen.past
            found.append(seen.observation)
        return found

    def can_occur(self, states: list[int]) -> bool:
        """Tell whether a run takes only steps that are declared possible."""
        return all(
            is_terminal(s) or is_terminal(t) or self.admission.allows(s, t)
            for s, t in itertools.pairwise(states)
        )

    def cases(self) -> Iterator[tuple[Any, set[int]]]:
        """Yield what is known of the last tick of a run, and the states that it may be in."""
        for run in self.runs():
            chosen = [self.completions(row) for row in run]
            count = np.prod([len(options) for options in chosen])
            if count <= 1000:
                played = (
                    [seen.state for seen in self.played(one)] for one in itertools.product(*chosen)
                )
                states = {one[-1] for one in played if self.can_occur(one)}
                if states:
                    yield self.observed(run), states

    def agreeing(self, observation: Any) -> set[int]:
        known = self.space.candidates(observation)
        assert known is not None
        return {*known, *self.space.terminal_candidates(observation)}

    def test_keys_are_for_good_and_names_tell_states_apart(self) -> None:
        space, states = self.space, self.admission.states()
        assert states == sorted(states)
        assert [space.key(state) for state in states] == self.keys
        names = [space.name(code) for code in self.codes]
        assert len({*names}) == len({space.key(code) for code in self.codes}) == len(self.codes)
        assert [space.parse_key(space.key(code)) for code in self.codes] == self.codes
        assert [space.key(code) for code in self.labels] == [f"!{x}" for x in space.terminals]
        assert len(states) <= space.cardinality
        for wrong in ("", "!", "!nothing", "nothing", self.keys[0] + "0"):
            with pytest.raises(ModelError):
                space.parse_key(wrong)

    def test_names_of_atoms_are_distinct_and_each_tells_states_apart(self) -> None:
        space = self.space
        assert len({*space.atoms}) == len(space.atoms)
        assert space.atoms == (*space.predicates, *space.terminals)
        for code, label in zip(self.labels, space.terminals, strict=True):
            assert [atom for atom in space.atoms if space.holds(atom, code)] == [label]
        for atom in space.predicates:
            assert {space.holds(atom, code) for code in self.codes} == {True, False}
            assert self.abstraction.resolve(atom) == (atom, False)
        assert self.abstraction.resolve("nobody_declared_this") is None

    def test_what_is_known_agrees_with_every_completion(self) -> None:
        space = self.space
        everything = np.array(self.codes)
        for observation, states in self.cases():
            possible = self.agreeing(observation)
            assert states <= possible
            if observation.state is not None:
                assert possible == states == {observation.state}
            assert observation.ended == all(map(is_terminal, possible))
            found = everything[space.agreeing(everything, observation)]
            assert set(found.tolist()) == possible & {*self.codes}

    def test_atoms_are_known_where_all_completions_agree(self) -> None:
        space = self.space
        for observation, states in self.cases():
            for atom in space.atoms:
                told = space.truth(atom, observation)
                apart = atom in space.predicates and not observation.ended
                held = {space.holds(atom, s) for s in states if not (apart and is_terminal(s))}
                assert told is None or held <= {told}
                if observation.state is not None:
                    assert told is space.holds(atom, observation.state)
            plain = {s for s in states if not is_terminal(s)}
            letters = {self.letter(state) for state in plain}
            assert letters <= {*space.letters(space.predicates, observation)}
            assert all(
                letter in {self.letter(state) for state in space.candidates(observation) or ()}
                for letter in space.letters(space.predicates, observation)
            )

    def letter(self, state: int) -> int:
        held = (self.space.holds(atom, state) for atom in self.space.predicates)
        return sum(1 << i for i, atom in enumerate(held) if atom)

    def test_of_a_missed_tick_nothing_is_known(self) -> None:
        nothing = self.space.nothing_known
        assert {*self.codes} <= self.agreeing(nothing)
        assert (nothing.state, nothing.ended, nothing.active) == (None, False, True)
        assert {self.space.truth(atom, nothing) for atom in self.space.atoms} == {None}

    def test_observations_go_through_json_and_into_sets(self) -> None:
        for observation, _ in [*self.cases(), (self.space.nothing_known, None)]:
            text = json.dumps(observation)
            again = self.space.parse_observation(json.loads(text))
            assert again == observation
            assert len({again, observation}) == 1
            json.dumps(self.space.details(observation))
            shown = self.space.observed_key(observation), self.space.observed_name(observation)
            if observation.state is not None:
                code = observation.state
                assert shown == (self.space.key(code), self.space.name(code))
            else:
                assert "?" in shown[0]

    def test_what_is_seen_can_occur(self) -> None:
        admission = self.admission
        for run in self.runs(unknown=False):
            source, target = (self.observed(part).state for part in (run[:-1] or run, run))
            assert admission.admits(source)
            assert admission.admits(target)
        assert all(map(admission.admits, self.codes))
        assert admission.is_covered(self.codes)
        assert not admission.is_covered(self.codes[1:])

    def test_terminal_labels_absorb_and_the_matrix_says_what_is_allowed(self) -> None:
        admission, codes = self.admission, self.codes
        for code in self.labels:
            assert [other for other in codes if admission.allows(code, other)] == [code]
        refused = admission.forbidden_matrix(codes).toarray()
        assert refused.tolist() == [
            [not is_terminal(s) and not admission.allows(s, t) for t in codes] for s in codes
        ]

    def test_another_label_changes_no_key(self) -> None:
        wider = self.space.with_terminal("finished")
        assert wider.terminals == (*self.space.terminals, "finished")
        assert wider.with_terminal("finished") == wider
        assert [wider.key(code) for code in self.codes] == [self.space.key(c) for c in self.codes]
        assert wider.key(terminal_code(len(self.space.terminals))) == "!finished"

    def test_neighbours_differ_in_the_predicate_that_they_are_named_after(self) -> None:
        for state in self.codes:
            for name, other in self.space.neighbours(state):
                assert self.space.holds(name, state) != self.space.holds(name, other)

    def test_the_digest_changes_with_the_meaning_and_only_with_it(self) -> None:
        digest = self.abstraction.digest
        assert compiled_from(self.text).abstraction.digest == digest
        for before, after in self.same.items():
            assert before in self.text
            assert compiled_from(self.text.replace(before, after)).abstraction.digest == digest
        digests = [digest]
        for before, after in self.other.items():
            assert before in self.text
            digests.append(compiled_from(self.text.replace(before, after)).abstraction.digest)
        assert len({*digests}) == len(digests)

    def test_an_abstraction_is_the_same_in_another_process(self) -> None:
        again = pickle.loads(pickle.dumps(self.abstraction))
        assert again.digest == self.abstraction.digest
        assert again.vocabulary == self.space
        for row in itertools.product(*self.domain()):
            seen = self.abstraction.observe(Snapshot(0, row), None)
            assert again.observe(Snapshot(0, row), None) == seen

    def test_a_model_file_gives_the_same_states(self) -> None:
        space = self.space
        content: Mapping[str, Any] = json.loads(json.dumps(space.content()))
        again = parse_states(space.kind, space.predicates, space.terminals, content)
        assert again == space
        with pytest.raises(ModelError):
            parse_states(space.kind, space.predicates, space.terminals, {**content, "odd": 1})

    def written(self, path: Path, seed: int) -> Path:
        draw = random.Random(seed)
        lines = []
        for tick in range(300):
            drawn = {
                name: draw.choice([*some, some[0], None]) for name, some in self.values.items()
            }
            known = {name: x for name, x in drawn.items() if x is not None}
            lines.append(json.dumps({"t": tick / 10, **known}) + "\n")
        path.write_text("".join(lines))
        return path

    def test_learn_save_replay_and_watch(self, tmp_path: Path) -> None:
        compiled = self.compiled
        paths = [self.written(tmp_path / f"{seed}.jsonl", seed) for seed in (1, 2)]
        model = learn(paths, compiled.spec, compiled.abstraction).model
        assert model.counts.sum() > 0
        save_model(model, tmp_path / "model.json")
        loaded = load_model(tmp_path / "model.json")
        assert loaded.fingerprint == model.fingerprint
        assert loaded.vocabulary == model.vocabulary
        assert dump_model(parse_model(dump_model(model).encode())) == dump_model(model)
        monitor = build_monitor(compiled, loaded)
        lines = []
        with open_recording(paths[0]) as recording:
            run = replay(
                Replaying(monitor, keep_signals=True),
                recording,
                on_verdict=lambda said: lines.append(verdict_line(said, monitor)),
            )
        assert run.lanes.names == (*self.space.present, *self.space.terminals)
        watch = LiveSession(compiled, loaded, {})
        for tick, text in enumerate(paths[0].read_text().splitlines()):
            row = json.loads(text)
            watch.accept("", watch.clock.time_ns(tick), row)
            verdict = watch.tick(tick).verdict
            assert verdict_line(verdict, watch.monitor) == lines[tick]
        assert {line["state"] for line in map(json.loads, lines)} >= {None}
