"""Chains of labelled states and floating-point probabilities as count models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.models.counts import CountModel, Smoothing, state_order
from forewarn.models.file import MAX_COUNT
from forewarn.states.interface import is_terminal, terminal_code
from forewarn.states.vocabulary import Vocabulary

Mask = NDArray[np.bool_]
Probability = float | Fraction

LARGEST_DENOMINATOR = 10**6
NEAR = 1e-15
OFF = 2e-3
"""What a row may miss 1 by: some tools write three decimals. The likeliest successor gets it."""


def labelled_chain(
    labels: Mapping[str, Mask],
    rows: Sequence[Mapping[int, Probability]],
    first: Iterable[int],
    terminals: Sequence[str],
    file: Path,
) -> tuple[CountModel, int]:
    """Return a count model at 1 Hz, and how many of its rows are rounded; raises ModelError.

    Labels, shape (n,), become predicates. States with the same labels differ in predicates
    ``index_1``, ``index_2``, ``index_4``..., the digits of their number. `rows` are the successors
    of each state with their probabilities. Labels in `terminals` become terminal labels: their
    states have to be absorbing, without other labels.
    """
    ends = _terminals(terminals, labels, rows, file)
    codes, names = _codes(labels, ends, terminals, len(rows))
    states = state_order(codes)
    index = {state: i for i, state in enumerate(states)}
    counts, rounded = _counts(rows, codes, index, file)
    starts = np.zeros(len(states), dtype=np.int64)
    for state in first:
        starts[index[codes[state]]] = 1
    model = CountModel(
        vocabulary=Vocabulary(tuple(names), tuple(terminals)),
        rate=1.0,
        digest="",
        states=states,
        counts=counts,
        starts=starts,
        smoothing=Smoothing("none"),
    )
    return model, rounded


def _terminals(
    names: Sequence[str],
    labels: Mapping[str, Mask],
    rows: Sequence[Mapping[int, Probability]],
    file: Path,
) -> dict[int, int]:
    """Return the code of each state that a terminal label ends."""
    result: dict[int, int] = {}
    for i, name in enumerate(names):
        key = f"--terminal {name}"
        if name not in labels:
            raise ModelError(
                "no such label", accepted=", ".join(labels) or "none: no labels", file=file, key=key
            )
        for state in np.flatnonzero(labels[name]).tolist():
            others = [other for other, mask in labels.items() if mask[state] and other != name]
            if set(rows[state]) != {state} or others:
                problem = f"also has {others[0]}" if others else "goes on"
                raise ModelError(
                    f"a state with this label {problem}",
                    accepted="a label of absorbing states that have no other label",
                    file=file,
                    key=key,
                )
            result[state] = terminal_code(i)
    return result


def _codes(
    labels: Mapping[str, Mask], ends: Mapping[int, int], terminals: Sequence[str], size: int
) -> tuple[list[int], list[str]]:
    """Return the code of each state, and the predicates."""
    names = [name for name in labels if name not in terminals]
    codes = [0] * size
    for i, name in enumerate(names):
        for state in np.flatnonzero(labels[name]).tolist():
            codes[state] |= 1 << i
    plain = [state for state in range(size) if state not in ends]
    if len({codes[state] for state in plain}) < len(plain):
        for state in plain:
            codes[state] |= state << len(names)
        for k in range((size - 1).bit_length()):
            name = f"index_{1 << k}"
            while name in labels:
                name += "_"
            names.append(name)
    return [ends.get(state, codes[state]) for state in range(size)], names


def _counts(
    rows: Sequence[Mapping[int, Probability]],
    codes: Sequence[int],
    index: Mapping[int, int],
    file: Path,
) -> tuple[sparse.csr_matrix, int]:
    """Return the counts, and how many rows are rounded."""
    sources: list[int] = []
    targets: list[int] = []
    values: list[int] = []
    rounded = 0
    for state, row in enumerate(rows):
        if is_terminal(codes[state]) or not row:
            continue
        total = sum(row.values())
        if abs(total - 1.0) > OFF:
            raise ModelError(
                f"the probabilities sum to {total:.6g}", accepted="1", file=file,
                key=f"state {state}",
            )  # fmt: skip
        numbers, exact = _whole(list(row.values()), state, file)
        rounded += not exact
        sources += [index[codes[state]]] * len(row)
        targets += [index[codes[to]] for to in row]
        values += numbers
    n = len(index)
    return sparse.csr_matrix((values, (sources, targets)), shape=(n, n), dtype=np.int64), rounded


def _whole(row: Sequence[Probability], state: int, file: Path) -> tuple[list[int], bool]:
    """Return counts in the proportions of a row, and whether they are what was written."""
    # 0.3333333333333333 stands for 1/3, 1e-10 for itself.
    near = [Fraction(value).limit_denominator(LARGEST_DENOMINATOR) for value in row]
    for shares in (near, [Fraction(str(value)) for value in row]):
        common = lcm(*(share.denominator for share in shares))
        fits = all(abs(s - Fraction(v)) <= NEAR * v for s, v in zip(shares, row, strict=True))
        if fits and sum(shares) == 1 and common <= MAX_COUNT:
            return [int(share * common) for share in shares], True
    numbers = [round(value * MAX_COUNT) for value in row]
    if min(numbers) < 1:
        raise ModelError(
            f"a probability of {min(row):.6g}",
            accepted=f"at least {1 / MAX_COUNT:.1g}, or a row of fractions over at most 2^40",
            file=file,
            key=f"state {state}",
        )
    numbers[int(np.argmax(numbers))] += MAX_COUNT - sum(numbers)
    return numbers, False
