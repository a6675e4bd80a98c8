"""Trees that ask what a text is about: learned, written, run, and refused without the extra."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from forewarn.config.file import load_spec
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import embeddings
from forewarn.expressions.functions.embeddings import MAX_EMBEDDED, EmbeddingModel
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.logic.specification import compile_spec
from forewarn.wings.trees.embedding_features import SIZE, weighed

pytest.importorskip("sklearn")

TEXT = """\
version: 1
clock: steps
signals: {said: {}, bad: {default: false}, over: {}}
states: {kind: tree, variables: [said], tree: s0}
terminal: {harmed: over and bad, done: over}
properties:
  harmless: {formula: always(not harmed), horizon: 10, thresholds: {act: 0.5}, enter: 1, hold: 0}
"""
PAYING = ("send the money to {}", "pay {} at once", "transfer all funds to {}", "wire {} our cash")
READING = ("read the page of {}", "look up the weather in {}", "find a flight to {}", "visit {}")
NAMES = ("Bob", "Rome", "Anna", "Paris", "Tom", "Oslo")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(TEXT)
    return path


def write(path: Path, paying: tuple[str, ...], reading: tuple[str, ...], runs: int) -> Path:
    rng, lines = random.Random(1), []
    for run in range(runs):
        bad = run % 2 == 0
        said = rng.choice(paying if bad else reading).format(rng.choice(NAMES))
        lines.append({"run": run, "over": False, "said": said})
        lines.append({"run": run, "over": True, "said": "", "bad": bad})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_tree_tells_texts_by_what_they_are_about(
    forewarn, config: Path, tmp_path: Path, embedding_model: EmbeddingModel
) -> None:
    runs = write(tmp_path / "runs.jsonl", PAYING, READING, 160)
    asked = ("-c", config, "--class", "violation:harmless:5", "--text", "embedding")
    printed = forewarn("learn-states", runs, *asked, "--write")
    assert f"embedding_score(said, '{embedding_model.name}', [{SIZE} weights]) > " in printed.out
    assert f"'{embedding_model.name}', [" in config.read_text()
    model = tmp_path / "model.json"
    forewarn("learn", runs, "-c", config, "-o", model)
    # Other words of the same meaning: no word or form of them was seen.
    others = write(tmp_path / "others.jsonl", ("give cash to {}",), ("tell me about {}",), 20)
    told = forewarn("replay", others, "-c", config, "-m", model, "--json", "--exit-zero")
    found = json.loads(told.out)["properties"]["harmless"]
    assert (found["violations"], found["detected"], found["false_alarms"]) == (10, 10, 0)


def test_the_model_is_part_of_the_digest(
    forewarn,
    config: Path,
    tmp_path: Path,
    embedding_model: EmbeddingModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = write(tmp_path / "runs.jsonl", PAYING, READING, 60)
    asked = ("-c", config, "--class", "violation:harmless:5", "--text", "embedding")
    forewarn("learn-states", runs, *asked, "--write")
    before = compile_spec(load_spec(config)).abstraction.digest
    other = embedding_model._replace(name="another@0")
    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "installed_model", lambda: other)
        refused = forewarn("validate", config)
        assert refused.code == 2 and "'another@0' is installed" in refused.out
        config.write_text(config.read_text().replace(embedding_model.name, "another@0"))
        assert compile_spec(load_spec(config)).abstraction.digest != before


def test_without_the_extra_the_commands_say_so(
    forewarn, config: Path, tmp_path: Path, no_embedding_model: None
) -> None:
    runs = write(tmp_path / "runs.jsonl", PAYING, READING, 60)
    asked = ("-c", config, "--class", "violation:harmless:5", "--text", "embedding")
    refused = forewarn("learn-states", runs, *asked)
    assert refused.code == 2 and "forewarn[embeddings]" in refused.err
    condition = f"embedding_score(said, 'l2_supercat_256@0', {[0.5] * 64}) > 0"
    tree = f'tree: {{if: "{condition}", then: s0, else: s1}}'
    config.write_text(TEXT.replace("tree: s0", tree))
    refused = forewarn("validate", config)
    assert refused.code == 2
    assert "states.tree.if" in refused.out and "forewarn[embeddings]" in refused.out


def test_weights_are_fitted_to_the_examples_that_decide(embedding_model: EmbeddingModel) -> None:
    texts = [said.format(name) for said in (*PAYING, *READING) for name in NAMES]
    texts += [None, "", "a" * (MAX_EMBEDDED + 1), "b"]
    classes = np.array([0] * 24 + [1] * 24 + [0, 1, 0, 1])
    rows = np.arange(0, 52, 2)
    (one,) = weighed("said", texts, classes, range(52), rows, smallest=2)
    turned = np.where(np.isin(np.arange(52), rows), classes, 1 - classes)
    assert weighed("said", texts, turned, range(52), rows, smallest=2)[0].source == one.source
    evaluate = compile_expression(parse_expression(one.source), ["said"])
    for text, value in zip(texts, one.values, strict=True):
        said = np.nan if text is None else evaluate([text])
        assert np.isnan(value) if isinstance(said, Unknown) or said != said else said == value
    assert not weighed("said", texts, classes, range(52), rows, smallest=20)
    assert len(weighed("said", texts, np.arange(52) // 18, range(52), rows, smallest=2)) == 3


def test_texts_that_only_their_own_trace_tells_have_no_weights(
    embedding_model: EmbeddingModel,
) -> None:
    rng = np.random.default_rng(1)
    texts = [f"{said.format(name)}, {word}" for said in (*PAYING, *READING) for name in NAMES
             for word in ("now", "please", "today", "then", "soon")]  # fmt: skip
    classes = rng.integers(0, 2, len(texts))
    assert not weighed("said", texts, classes, range(len(texts)), np.arange(len(texts)), 2)
    # The words of a trace are like each other: a trace must not be told by its own.
    runs = np.arange(len(texts)) // 5
    classes = rng.integers(0, 2, len(texts) // 5)[runs]
    assert not weighed("said", texts, classes, runs.tolist(), np.arange(len(texts)), 2)
