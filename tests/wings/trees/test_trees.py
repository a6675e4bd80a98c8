"""Trees learned from traces: gain, types, limits, and scikit-learn as the oracle."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from forewarn.errors import ConfigError, RecordingError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.learning.thresholds import thresholds_between
from forewarn.wings.trees.candidates import Examples, Flags
from forewarn.wings.trees.growth import Grower, Growth, choose_size, learn_tree
from forewarn.wings.trees.nodes import Leaf, leaves, paths


def _examples(variables, classes, runs=None):
    return Examples(variables, classes, runs or list(range(len(classes))))


def _entropy(classes):
    counts = np.unique(classes, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _says(condition, values):
    """What the monitor file's own language says of a condition."""
    expression = parse_expression(condition)
    names = sorted(expression.names)
    if any(values[name] is None for name in names):
        return -1
    evaluate = compile_expression(expression, names)
    return int(evaluate([values[name] for name in names]))


_numbers = st.one_of(
    st.none(), st.integers(-5, 5), st.sampled_from([0.1, 0.2, 0.30000000000000004])
)
_texts = st.one_of(
    st.none(),
    st.sampled_from(
        ["", "a file", "it's a file", 'say "no"', "no\\file", "out/a12.txt", "a3@home.org", "x*?#"]
    ),
)
_lists = st.one_of(
    st.none(),
    st.lists(st.sampled_from(["read", "write", "rm -rf"]), max_size=3),
    st.lists(st.sampled_from([0.5, 2, -3, float("inf")]), max_size=3),
)
_rows = st.lists(
    st.fixed_dictionaries(
        {"n": _numbers, "b": st.one_of(st.none(), st.booleans()), "t": _texts, "c": _lists}
    ),
    min_size=2,
    max_size=30,
)


@given(rows=_rows, data=st.data())
def test_a_learned_condition_says_what_its_expression_says(rows, data):
    classes = data.draw(st.lists(st.sampled_from("xyz"), min_size=len(rows), max_size=len(rows)))
    variables = {name: [row[name] for row in rows] for name in "nbtc"}
    grown = learn_tree(_examples(variables, classes), Growth())
    for choice in grown.splits:
        assert choice.truth.tolist() == [_says(choice.condition, row) for row in rows]


@given(rows=_rows, data=st.data())
def test_no_tree_loses_an_example_without_saying_so(rows, data):
    classes = data.draw(st.lists(st.sampled_from("xyz"), min_size=len(rows), max_size=len(rows)))
    variables = {name: [row[name] for row in rows] for name in "nbtc"}
    grown = learn_tree(_examples(variables, classes), Growth())
    reached = 0
    for leaf, path in paths(grown.tree):
        here = [
            c
            for row, c in zip(rows, classes, strict=True)
            if all(_says(condition, row) == outcome for condition, outcome in path)
        ]
        assert {c: here.count(c) for c in set(here)} == grown.counts[leaf.name]
        reached += len(here)
    assert reached + grown.undecided == len(rows)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_tree_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    data = np.round(rng.normal(size=(300, 3)), 2)
    classes = (data[:, 0] > 0.3) * 2 + (data[:, 1] > -0.5) * (data[:, 2] > 0)
    classes = np.where(rng.random(300) < 0.15, rng.integers(0, 4, 300), classes)
    variables = {f"x{i}": data[:, i].tolist() for i in range(3)}
    grown = learn_tree(
        _examples(variables, classes.tolist()), Growth(leaves=10, leaf_size=5, thresholds=256)
    )
    peer = DecisionTreeClassifier(
        criterion="entropy", max_leaf_nodes=10, min_samples_leaf=5, random_state=0
    ).fit(data, classes)

    def remaining(groups):
        return sum(sum(g) * _entropy(np.repeat(np.arange(len(g)), g)) for g in groups) / 300

    places = peer.apply(data)
    theirs = [np.bincount(classes[places == leaf]).tolist() for leaf in np.unique(places)]
    ours = [list(counts.values()) for counts in grown.counts.values()]
    assert remaining(ours) == pytest.approx(remaining(theirs), abs=1e-9)
    assert sorted(map(sum, ours)) == sorted(map(sum, theirs))


def test_the_gain_is_the_papers():
    values, classes = [1, 2, 3, 4, 5, 6], list("aababb")
    (first, *_) = learn_tree(_examples({"v": values}, classes), Growth()).splits
    low, high = classes[:2], classes[2:]
    expected = _entropy(classes) - 2 / 6 * _entropy(low) - 4 / 6 * _entropy(high)
    assert first.condition in ("v > 2.5", "v > 2", "v > 4.5", "v > 4")
    assert first.gain == pytest.approx(expected)


def test_a_gain_that_is_not_more_than_the_least_is_no_split():
    examples = _examples({"v": [1, 2, 3, 4]}, list("abab"))
    gain = learn_tree(examples, Growth()).splits[0].gain
    assert learn_tree(examples, Growth(gain=gain)).tree == Leaf("s0")
    assert learn_tree(examples, Growth(gain=gain * 0.99)).splits


def test_a_variable_is_not_asked_twice_where_that_is_wished():
    examples = _examples({"v": [1, 2, 3, 4, 5, 6]}, list("abcabc"))
    grown = learn_tree(examples, Growth(reuse=False))
    assert len(leaves(grown.tree)) == 2
    assert len(leaves(learn_tree(examples, Growth()).tree)) == 6


def test_what_is_unknown_weighs_less():
    known = {"v": [1.0, 1.0, 2.0, 2.0]}
    half = {"v": [1.0, None, None, 2.0]}
    classes = list("aabb")
    assert learn_tree(_examples(known, classes), Growth()).splits[0].gain == pytest.approx(1.0)
    grown = learn_tree(_examples(half, classes), Growth())
    assert grown.splits[0].gain == pytest.approx(0.5)
    assert grown.undecided == 2


@pytest.mark.parametrize(
    ("growth", "size"),
    [(Growth(leaves=3), 3), (Growth(depth=1), 2), (Growth(leaf_size=4), 2), (Growth(), 8)],
)
def test_limits_hold(growth, size):
    grown = learn_tree(_examples({"v": list(range(8))}, list("abcdefgh")), growth)
    assert len(leaves(grown.tree)) == size


def test_a_limit_of_leaves_cuts_the_best_first_growth():
    rng = np.random.default_rng(1)
    variables = {name: rng.integers(0, 9, 200).tolist() for name in "abc"}
    examples = _examples(variables, rng.integers(0, 3, 200).tolist())
    whole = learn_tree(examples, Growth(leaves=20)).splits
    part = learn_tree(examples, Growth(leaves=7)).splits
    assert [c.condition for c in part] == [c.condition for c in whole[:6]]


def test_no_examples_is_an_error():
    with pytest.raises(RecordingError, match="no examples"):
        _examples({"v": []}, [])


@pytest.mark.parametrize(
    "wrong", [{"leaves": 0}, {"leaf_size": 0}, {"gain": -1}, {"gain": math.nan}, {"thresholds": 0}]
)
def test_a_limit_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError):
        Growth(**wrong)


def test_the_size_is_chosen_on_traces_that_were_held_out():
    rng = np.random.default_rng(0)
    runs = np.repeat(np.arange(60), 20)
    v, w = rng.random(1200), rng.random(1200)
    classes = np.where(rng.random(1200) < 0.1, 2, (v > 0.3) * 1)
    examples = _examples({"v": v.tolist(), "w": w.tolist()}, classes.tolist(), runs.tolist())
    size, sizes = choose_size(examples, Growth(leaves=30))
    assert size in (2, 3)  # the threshold is a quantile, not 0.3 itself
    assert min(sizes, key=lambda s: s.loss).leaves < 30
    # Held out means held out: what memorises single traces predicts no better than chance.
    noise = _examples({"run": runs.tolist()}, (runs % 2).tolist(), runs.tolist())
    size, sizes = choose_size(noise, Growth(leaves=60))
    assert size == 1 and sizes[-1].loss > sizes[0].loss


@pytest.mark.parametrize(
    ("values", "condition"),
    [
        (["a1.txt", "a22.txt", "b", "c"], "like(v, 'a#.txt')"),
        (["out/a", "out/b", "in/a", "in/b"], "like(v, 'out/*')"),
        (["b.txt", "a.txt", "a.csv", "b.md"], "like(v, '*.txt')"),
        (["x@evil.com", "y@evil.com", "x@home.org", "y@home.org"], "like(v, '*@evil.com')"),
    ],
)
def test_texts_are_told_apart_by_their_form(values, condition):
    grown = learn_tree(_examples({"v": values}, list("yynn")), Growth(text=("pattern",)))
    (split,) = grown.splits
    assert split.condition == condition or split.truth.tolist() in ([1, 1, 0, 0], [0, 0, 1, 1])
    assert split.truth.tolist() == [_says(split.condition, {"v": value}) for value in values]


def test_collections_are_told_apart_by_members():
    for member in ("rm", 3, True):
        values = [[member], [member], [], []]
        conditions = {
            split.condition
            for split in learn_tree(_examples({"v": values}, list("yynn")), Growth()).splits
        }
        assert conditions == {"len(v) > 0"}
        other = "no" if isinstance(member, str) else False if member is True else 7
        values = [[member, other], [member], [other, other], [other]]
        (split,) = learn_tree(_examples({"v": values}, list("yynn")), Growth()).splits
        assert split.truth.tolist() == [_says(split.condition, {"v": value}) for value in values]
        assert f"{member!r}".lower() in split.condition or repr(other).lower() in split.condition


def _asked(variables, classes, runs=None, growth=None):
    """All conditions that are tried on some examples, with what each says."""
    grower = Grower(_examples(variables, classes, runs), growth or Growth())
    found = {}
    for asked in grower._asked:
        if isinstance(asked, Flags):
            found |= {asked.condition(i): asked.truth(i) for i in range(len(asked.conditions))}
        else:
            known = asked.values[~np.isnan(asked.values)]
            for threshold in thresholds_between(known, 64):
                found[asked.condition(threshold)] = asked.truth(threshold)
    return found


_element_lists = st.one_of(
    st.none(),
    st.lists(st.sampled_from([0.5, 2.0, -3.0, math.inf, -math.inf, math.nan]), max_size=4),
    st.lists(st.sampled_from([0, 1, 5, -7]), max_size=4),
)
_vectors = st.one_of(
    st.lists(_element_lists, min_size=2, max_size=25),
    st.lists(st.none() | st.lists(st.booleans(), max_size=4), min_size=2, max_size=25),
    st.lists(st.tuples(*[st.sampled_from([0.5, 1, math.nan])] * 3), min_size=2, max_size=25),
)


@given(values=_vectors, data=st.data())
def test_every_question_about_elements_says_what_its_expression_says(values, data):
    classes = data.draw(st.lists(st.sampled_from("xy"), min_size=len(values), max_size=len(values)))
    for wanted in (values, [None if v is None else np.array(v) for v in values]):
        for condition, truth in _asked({"v": wanted}, classes).items():
            for value, says in zip(wanted, truth.tolist(), strict=True):
                assert says == _says_or_unknown(condition, {"v": value}), (condition, value)


def _says_or_unknown(condition, values):
    expression = parse_expression(condition)
    if any(values[name] is None for name in expression.names):
        return -1
    found = compile_expression(expression, sorted(expression.names))([*values.values()])
    return -1 if isinstance(found, Unknown) or found != found else int(found)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_question_about_elements_is_the_one_that_brute_force_finds(seed):
    rng = np.random.default_rng(seed)
    values = [np.round(rng.normal(0, 9, rng.integers(0, 7)), 1) for _ in range(120)]
    rules = (
        lambda v: v.max(initial=-np.inf) > 8,
        lambda v: v.min(initial=np.inf) > -4,
        lambda v: (v > 3).sum() > 2,
    )
    classes = [int(rules[seed % 3](v)) for v in values]
    choice = Grower(_examples({"v": values}, classes), Growth(thresholds=256)).best_split(
        np.arange(120)
    )
    whole = _entropy(classes)

    def gain(truth):
        parts = [[c for c, t in zip(classes, truth, strict=True) if t == side] for side in (0, 1)]
        return whole - sum(len(p) / 120 * _entropy(p) for p in parts if p)

    columns = {
        "len": [len(v) for v in values],
        "max": [v.max(initial=-np.inf) for v in values],
        "min": [v.min(initial=np.inf) for v in values],
    }
    brute = max(gain([x > t for x in column]) for column in columns.values() for t in column)
    assert choice.gain >= brute - 1e-9
    assert choice.gain == pytest.approx(gain(choice.truth))
    if seed % 3 < 2:  # the thresholds of counts are quantiles, not the rule's own
        assert choice.gain == pytest.approx(whole)


def test_a_measured_number_is_no_member_that_is_asked_for():
    rng = np.random.default_rng(3)
    measured = [np.round(rng.normal(size=3)) / 4 for _ in range(80)]
    classes = [int(0.25 in v) for v in measured]
    for values in (measured, [v.tolist() for v in measured]):
        assert not [c for c in _asked({"v": values}, classes) if " in v" in c]
    codes = [rng.integers(0, 5, 3) for _ in range(80)]
    assert "3 in v" in _asked({"v": codes}, classes)
    marks = [rng.integers(0, 9_000, 3) for _ in range(80)]  # of objects that are tracked, say
    assert not [c for c in _asked({"v": marks}, classes) if " in v" in c]
    stamps = [rng.integers(2**60, 2**61, 3) for _ in range(80)]
    assert not [c for c in _asked({"v": stamps}, classes) if "[" in c or "(v," in c]


@pytest.mark.parametrize("kind", ["value", "contains", "pattern", "members"])
def test_what_one_trace_alone_has_is_not_asked_for(kind):
    names = ["a1@x.org", "a22@x.org", "in/b", "out/c"]
    texts = [name for name in names for _ in range(4)]
    values = [[text] for text in texts] if kind == "members" else texts
    growth = Growth() if kind == "members" else Growth(text=(kind,))
    classes = ["y" if text[0] == "a" else "n" for text in texts]
    alone = _asked({"v": values}, classes, [names.index(text) for text in texts], growth)
    assert not [c for c in alone if "len" not in c and "org" not in c and "#" not in c]
    shared = _asked({"v": values}, classes, [i % 4 for i in range(16)], growth)
    assert len(shared) > len(alone)
    # One trace is nothing to compare with: all of it may be asked for.
    assert _asked({"v": values}, classes, [0] * 16, growth).keys() == shared.keys()


@pytest.mark.parametrize(
    ("values", "condition"),
    [
        ([-math.inf, 3.5], "v > 2"),
        ([-math.inf, math.inf], "v > 0"),
        ([3.5, math.inf], "v > 3.5"),
        ([-math.inf, -1.7e308], None),
        ([1.7e308, 1.75e308], None),
    ],
)
def test_a_threshold_beside_infinity_is_finite(values, condition):
    (split,) = learn_tree(_examples({"v": values}, ["a", "b"]), Growth()).splits
    assert condition in (None, split.condition)
    assert [_says(split.condition, {"v": v}) for v in values] == [0, 1] == split.truth.tolist()
