"""CTL on random graphs and on trees of executions, against pyModelChecking in a process of its own.

It has no bounds, and needs a lark of another age: hence an environment of its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from own_environment import NotInstalledError, variables
from scipy import sparse

from forewarn.checking.ctl import evaluate, parse
from forewarn.wings.plans.computation_tree import TreeBuilder, graph_of

#: Reads lines with a graph and formulas; answers with the nodes at which each formula holds.
PROGRAM = """
import json, sys
from pyModelChecking import Kripke
from pyModelChecking.CTL import Parser, modelcheck
read = Parser()
for line in sys.stdin:
    case = json.loads(line)
    names = {node: set(names) for node, names in enumerate(case["names"])}
    graph = Kripke(R=[tuple(edge) for edge in case["edges"]], L=names)
    print(json.dumps([sorted(modelcheck(graph, read(text))) for text in case["formulas"]]))
"""
NAMES = ("p", "q")


def drawn_formula(leaves: int, drawn: random.Random) -> tuple[str, str]:
    """Return a formula in our words and in theirs."""
    if leaves == 0:
        name = drawn.choice([*NAMES, "true"])
        return name, name
    kind = drawn.choice(["!", "&", "|", "=>", "X", "F", "G", "U", "U"])
    sides = [
        drawn_formula(leaves - 1, drawn) for _ in range(2 if kind in ("&", "|", "=>", "U") else 1)
    ]
    ours, theirs = ([side[i] for side in sides] for i in (0, 1))
    if kind == "!":
        return f"!({ours[0]})", f"not ({theirs[0]})"
    if kind in ("&", "|", "=>"):
        word = {"&": "and", "|": "or", "=>": "-->"}[kind]
        return f"({ours[0]}) {kind} ({ours[1]})", f"(({theirs[0]}) {word} ({theirs[1]}))"
    path = drawn.choice("AE")
    if kind == "U":
        return f"{path} [({ours[0]}) U ({ours[1]})]", f"{path}(({theirs[0]}) U ({theirs[1]}))"
    return f"{path}{kind} ({ours[0]})", f"{path}({kind}({theirs[0]}))"


def graphs(drawn: random.Random) -> list[tuple[sparse.csr_matrix, dict[str, np.ndarray]]]:
    """Return graphs in which each node has a successor, and where names hold."""
    found = []
    for number in range(60):
        n = drawn.randint(1, 8)
        edges = np.zeros((n, n), bool)
        for node in range(n):
            for _ in range(drawn.randint(1, 3)):
                edges[node, drawn.randrange(n)] = True
        matrix, states = sparse.csr_matrix(edges.astype(float)), np.arange(n)
        if number % 3 == 0:
            builder = TreeBuilder()
            for _ in range(drawn.randint(1, 5)):
                builder.add([drawn.randrange(4) for _ in range(drawn.randint(1, 4))])
            matrix, states = graph_of(builder.tree())
        truths = {
            name: np.array([drawn.random() < 0.5 for _ in range(8)])[states] for name in NAMES
        }
        found.append((matrix, truths))
    return found


def test_labels_are_those_of_pymodelchecking() -> None:
    try:
        environment = variables("pymodelchecking")
    except NotInstalledError as error:
        pytest.skip(f"pyModelChecking cannot be installed here: {error}")
    drawn = random.Random(7)
    cases = []
    lines = []
    for matrix, truths in graphs(drawn):
        texts = [drawn_formula(drawn.randint(1, 3), drawn) for _ in range(10)]
        cases.append((matrix, truths, texts))
        named: list[list[str]] = [
            [name for name in NAMES if truths[name][node]] for node in range(matrix.shape[0])
        ]
        case: dict[str, Any] = {
            "edges": np.argwhere(matrix.toarray() > 0).tolist(),
            "names": named,
            "formulas": [theirs for _, theirs in texts],
        }
        lines.append(json.dumps(case))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(lines), env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    compared = 0
    for (matrix, truths, texts), line in zip(cases, ran.stdout.splitlines(), strict=True):
        for (ours, _), theirs in zip(texts, json.loads(line), strict=True):
            found = evaluate(parse(ours), truths.__getitem__, matrix)
            assert np.flatnonzero(found).tolist() == theirs, (ours, matrix.toarray(), truths)
            compared += 0 < len(theirs) < len(found)
    assert compared > 100  # so many are neither true nor false everywhere
