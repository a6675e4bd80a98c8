"""Transition counts between abstract states: what is learned, before it becomes a chain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.config.fields import Rate, is_rate
from forewarn.errors import ModelError
from forewarn.models import hierarchical_prior
from forewarn.models.process import DecisionProcess, Steps, check_steps, count_actions, process_of
from forewarn.models.shards import Shard, digest_of
from forewarn.states.interface import StateSpace, is_terminal, mark_of
from forewarn.states.learned_signal import SECTION

if TYPE_CHECKING:
    from forewarn.models.calibration_map import Recalibration
    from forewarn.models.estimates import Estimate
    from forewarn.models.hierarchical_prior import HierarchicalPrior
    from forewarn.states.learned_signal import SignalFit

Alpha: TypeAlias = float | Literal["sparse", "none"]
Candidates = Literal["observed", "admissible"]
EndRule = Literal["drop", "absorb"]

END_LABEL = "end"
_AT_ONCE = 1 << 16

ALPHA_ACCEPTED = "'sparse', 'none' or a finite number >= 0"


@dataclass(frozen=True)
class Smoothing:
    """How probability is given to transitions that were never seen.

    `alpha`: weight of each valid successor before anything was counted (ProbGuard eq. 1; 1 is the
        paper's). ``'sparse'`` gives a row a total weight of 1, so ``1 / k`` to each of its ``k``
        successors; ``'none'`` is maximum likelihood.
    `candidates`: which states may follow: those seen in the recordings, or all admissible ones.
    """

    alpha: Alpha = "sparse"
    candidates: Candidates = "observed"

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str):
            good = self.alpha in {"sparse", "none"}
        elif isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)):
            good = False
        else:
            good = 0 <= self.alpha < float("inf")
        if not good:
            raise ModelError(
                f"{self.alpha!r} is no smoothing weight",
                accepted=ALPHA_ACCEPTED,
                key="smoothing.alpha",
            )
        if self.candidates not in {"observed", "admissible"}:
            raise ModelError(
                f"{self.candidates!r} is no choice of candidate states",
                accepted="'observed' or 'admissible'",
                key="smoothing.candidates",
            )

    def weight(self, successors: int) -> float:
        """Return the prior weight of one successor of a row that has `successors` valid ones."""
        if self.alpha == "none" or successors == 0:
            return 0.0
        return 1.0 / successors if self.alpha == "sparse" else float(self.alpha)


@dataclass(frozen=True)
class Provenance:
    """One recording that a model was learned from.

    `digest`: digest of its content, empty if unknown.
    `duration`: its length in seconds.
    `ticks`, `transitions`: ticks it had, and transitions counted from it.
    """

    recording: str
    digest: str = ""
    duration: float = 0.0
    ticks: int = 0
    transitions: int = 0


def _nothing() -> sparse.csr_matrix:
    return sparse.csr_matrix((0, 0), dtype=bool)


@dataclass(frozen=True, eq=False)
class CountModel:
    """Counted transitions of one abstraction, as kept in a model file.

    `vocabulary`: the states, and the names of predicates and terminal labels.
    `rate`: ticks a second, of which one is one step of the chain; or the clock counts steps.
    `digest`: digest of the abstraction; counts of different abstractions never mix.
    `states`: state codes; position is the index used in every array.
    `counts` (shape (n, n)): ``counts[i, j]`` transitions from state i to state j in one tick.
    `starts` (shape (n,)): how many episodes began in each state.
    `forbidden` (shape (n, n)): transitions that a declared rule forbids. Terminal rows need not be
        listed.
    `intervened`: ticks left out because an intervention was active.
    `end`: what the end of a recording was taken for.
    `recalibration`: maps from the chain's risk to observed frequency, for some properties.
    `steps`: what was done in which state: recorded actions, which `counts` sums out, and those that
        Forewarn imposed, which are not part of it. Neither probabilities nor seeds depend on it.
    `state_source_recordings`: beginnings of the digests of recordings that the states were learned
        from, in rising order.
    `shards`: what recordings gave by themselves, where it was kept; part of `counts`.
    `sections`: what wings and other packages keep in the model file, by its keys
        (`models.sections`).
    `estimates`: what the risk of some properties is made of.
    `hierarchical_prior`: what a group takes from the recordings of others; not part of `counts`.
    """

    vocabulary: StateSpace
    rate: Rate
    digest: str
    states: tuple[int, ...]
    counts: sparse.csr_matrix
    starts: NDArray[np.int64]
    smoothing: Smoothing = Smoothing()
    forbidden: sparse.csr_matrix = field(default_factory=_nothing)
    provenance: tuple[Provenance, ...] = ()
    intervened: int = 0
    end: EndRule = "drop"
    recalibration: tuple[Recalibration, ...] = ()
    steps: Steps = ()
    state_source_recordings: tuple[str, ...] = ()
    shards: tuple[Shard, ...] = ()
    sections: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    estimates: tuple[Estimate, ...] = ()
    hierarchical_prior: HierarchicalPrior | None = None

    def __post_init__(self) -> None:
        n = len(self.states)
        if self.forbidden.shape == (0, 0):
            object.__setattr__(self, "forbidden", sparse.csr_matrix((n, n), dtype=bool))
        _check(self, n)
        check_steps(self.steps, self.vocabulary, self.counts, self.index)

    @property
    def learned_score(self) -> tuple[SignalFit, ...]:
        """Learned scores, which the abstraction's digest covers."""
        return self.sections.get(SECTION, ())

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.states)

    @cached_property
    def index(self) -> dict[int, int]:
        """Position of each state code."""
        return {state: i for i, state in enumerate(self.states)}

    @cached_property
    def terminal(self) -> NDArray[np.bool_]:
        """Mask of the states that are terminal labels, shape (n,)."""
        return np.fromiter(map(is_terminal, self.states), dtype=bool, count=self.size)

    @cached_property
    def visits(self) -> NDArray[np.int64]:
        """Transitions counted out of each state, shape (n,)."""
        return np.asarray(self.counts.sum(axis=1)).ravel().astype(np.int64)

    @cached_property
    def weights(self) -> sparse.csr_matrix:
        """What is known of each transition, in visits: counts, and what is borrowed; float64."""
        own = self.counts.astype(np.float64)
        return (
            own
            if self.hierarchical_prior is None
            else sparse.csr_matrix(own + self.hierarchical_prior.weights)
        )

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Mask of the states that occur in the recordings, borrowed ones included, shape (n,)."""
        left, entered = (np.asarray(self.weights.sum(axis=axis)).ravel() for axis in (1, 0))
        return np.asarray((left + entered + self.starts) > 0)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that determines probabilities."""
        more = repr(self.recalibration) if self.recalibration else ""
        more += digest_of(self.shards) if self.shards else ""
        more += repr(self.estimates) if self.estimates else ""
        return hashlib.sha256((self.seed + more).encode()).hexdigest() if more else self.seed

    @cached_property
    def seed(self) -> str:
        """SHA-256 of all that determines the chain; seeds every random sampling."""
        digest = hashlib.sha256()
        digest.update(repr((self.digest, self.rate, self.smoothing, self.end)).encode())
        digest.update(repr((self.vocabulary.predicates, self.vocabulary.terminals)).encode())
        digest.update(repr(self.states).encode())
        for matrix in (self.counts, self.forbidden):
            for part in (matrix.indptr, matrix.indices, matrix.data):
                for first in range(0, len(part), _AT_ONCE):
                    piece = part[first : first + _AT_ONCE]
                    digest.update(np.ascontiguousarray(piece, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(self.starts, dtype="<i8").tobytes())
        if self.hierarchical_prior is not None:
            weights = self.hierarchical_prior.weights
            for part in (weights.indptr, weights.indices):
                digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
            digest.update(np.ascontiguousarray(weights.data, dtype="<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def process(self) -> DecisionProcess:
        """Decision process of maximum likelihood; transitions without an action do not count."""
        return process_of(count_actions(self.steps, self.states))

    @cached_property
    def state_source_provenance(self) -> tuple[Provenance, ...]:
        """The recordings that are counted, and that the states were learned from as well."""
        marks = {*self.state_source_recordings}
        return tuple(one for one in self.provenance if mark_of(one.digest) in marks)

    def name(self, index: int) -> str:
        """Return the readable name of the state at `index`."""
        return self.vocabulary.name(self.states[index])


def _check(model: CountModel, n: int) -> None:
    if not is_rate(model.rate):
        raise ModelError(
            f"{model.rate!r} is no rate", accepted="a finite number > 0, or steps", key="rate"
        )
    if len(set(model.states)) != n:
        raise ModelError("a state is listed twice", accepted="distinct states", key="states")
    if model.counts.shape != (n, n) or model.forbidden.shape != (n, n):
        raise ModelError(
            f"matrices of shape {model.counts.shape} and {model.forbidden.shape} for {n} states",
            accepted=f"shape ({n}, {n})",
            key="transitions",
        )
    if model.starts.shape != (n,) or (n and model.starts.min() < 0):
        raise ModelError("starts do not fit the states", accepted="n counts >= 0", key="starts")
    if model.counts.dtype.kind not in "iu":
        raise ModelError(
            f"counts of type {model.counts.dtype}", accepted="whole numbers", key="transitions"
        )
    if model.counts.nnz and model.counts.data.min() < 0:
        coo = model.counts.tocoo()
        row, column = (int(part[coo.data.argmin()]) for part in (coo.row, coo.col))
        raise ModelError(
            f"negative count {model.counts[row, column]} from {model.name(row)!r} to "
            f"{model.name(column)!r}",
            accepted="whole numbers >= 0",
            key="transitions",
        )
    for row in np.flatnonzero(model.terminal):
        if model.counts[row].sum():
            raise ModelError(
                f"transitions out of the terminal state {model.name(int(row))!r}",
                accepted="none: a terminal state absorbs",
                key="transitions",
            )
    if model.shards:
        rows = np.concatenate([shard.transitions for shard in model.shards])
        split = sparse.csr_matrix((rows[:, 2], (rows[:, 0], rows[:, 1])), shape=(n, n))
        if (split > model.counts).nnz:
            raise ModelError(
                "recordings have more transitions than the model",
                accepted="at most as many transitions of each kind",
                key="shards",
            )
    if model.hierarchical_prior is not None:
        hierarchical_prior.check(model.hierarchical_prior, model.terminal)
    clash = sparse.coo_matrix(model.weights.multiply(model.forbidden))
    if clash.nnz and clash.data.any():
        row, column = int(clash.row[0]), int(clash.col[0])
        raise ModelError(
            f"counts for a forbidden transition, {model.name(row)!r} to {model.name(column)!r}",
            accepted="none for transitions that a constraint forbids",
            key="transitions",
        )


def state_order(states: Iterable[int]) -> tuple[int, ...]:
    """Return `states` without repetition in the order of model files: terminals come last."""
    return tuple(sorted(set(states), key=lambda s: (is_terminal(s), abs(s))))


def with_states(model: CountModel, states: Sequence[int]) -> CountModel:
    """Return `model` over `states` (a superset in any order), new ones with no counts."""
    position = {state: i for i, state in enumerate(states)}
    missing = [state for state in model.states if state not in position]
    if missing:
        raise ModelError(f"states {missing} would be lost", accepted="a superset of the states")
    target = np.fromiter((position[s] for s in model.states), dtype=np.int64, count=model.size)
    starts = np.zeros(len(states), dtype=np.int64)
    starts[target] = model.starts
    return replace(
        model,
        states=tuple(states),
        counts=_moved(model.counts, target, len(states), np.int64),
        starts=starts,
        forbidden=_moved(model.forbidden, target, len(states), np.bool_),
        shards=tuple(shard.moved(target) for shard in model.shards),
        hierarchical_prior=None
        if model.hierarchical_prior is None
        else model.hierarchical_prior.moved(target, len(states)),
    )


def _moved(
    matrix: sparse.csr_matrix, target: NDArray[np.int64], n: int, dtype: type[np.generic]
) -> sparse.csr_matrix:
    coo = matrix.tocoo()
    return sparse.csr_matrix(
        (coo.data, (target[coo.row], target[coo.col])), shape=(n, n), dtype=dtype
    )
