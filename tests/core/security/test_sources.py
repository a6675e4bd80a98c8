"""What the packages' own sources may not do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FORBIDDEN = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
# Where code is made, from trees and lines that are put together there out of checked parts.
# What our own processes send each other, as multiprocessing does, and tasks for the workers of a
# cluster, as Dask does; nothing that was stored. Moments are only written, to be compared; a
# contract sends states through.
MAY_UNPICKLE = {
    ("forewarn/src/forewarn/signals/snapshots.py", "pickle"),
    ("monitor_node/src/monitor_node/model_subprocess.py", "pickle"),
    ("forewarn/src/forewarn/wings/fleet/cluster.py", "pickle"),
    ("forewarn/src/forewarn/learning/executors.py", "pickle"),
    ("forewarn/src/forewarn/testing/state_spaces.py", "pickle"),
}
MAY_RUN_CODE = {
    ("forewarn/src/forewarn/expressions/compiler.py", "compile"),
    ("forewarn/src/forewarn/expressions/compiler.py", "eval"),
    ("forewarn/src/forewarn/states/predicates/kleene.py", "compile"),
    ("forewarn/src/forewarn/states/predicates/kleene.py", "exec"),
}
SHELLS = {"system", "popen", "spawnl", "spawnv", "execv", "execl"}
ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(
    path
    for package in ("forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard")
    for path in (ROOT / package / "src").rglob("*.py")
)


@pytest.fixture(scope="module")
def nodes() -> dict[str, list[ast.AST]]:
    """Return what each source is made of, gone through once: it takes seconds."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)
    return {
        str(path.relative_to(ROOT)): [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, kinds)
        ]
        for path in SOURCES
    }


def packages(nodes: list[ast.AST]) -> set[str]:
    """Return the names of the packages that are imported from."""
    names = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    names += [
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
    ]
    return {name.split(".")[0] for name in names}


def calls(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                yield f"{node.func.value.id}.{node.func.attr}", node


def test_there_are_sources() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == {
        "forewarn",
        "forewarn_ros",
        "monitor_node",
        "apollo_bridge",
        "agent_guard",
    }


def test_nothing_is_unpickled_and_code_is_run_in_two_places_only(
    nodes: dict[str, list[ast.AST]],
) -> None:
    imported = {(name, package) for name in nodes for package in packages(nodes[name])}
    assert {item for item in imported if item[1] in FORBIDDEN} == MAY_UNPICKLE
    called = {(name, function) for name in nodes for function, _ in calls(nodes[name])}
    found = {(name, function.removeprefix("builtins.")) for name, function in called}
    assert {item for item in found if item[1] in RUNS_CODE} == MAY_RUN_CODE
    assert not {item for item in called if item[1] in {f"os.{shell}" for shell in SHELLS}}


def test_interpreters_are_started_in_one_place(nodes: dict[str, list[ast.AST]]) -> None:
    """`command` and `spawning` leave the folder out; the bridge runs a file, which does so, too."""
    starting = {
        name
        for name, found in nodes.items()
        if "multiprocessing" in packages(found)
        or any(isinstance(node, ast.Attribute) and node.attr == "executable" for node in found)
    }
    assert starting == {
        "forewarn/src/forewarn/files/interpreters.py",
        "apollo_bridge/src/apollo_bridge/cyber.py",
    }


def test_loaders_are_the_safe_ones(nodes: dict[str, list[ast.AST]]) -> None:
    made = [(name, *call) for name, found in nodes.items() for call in calls(found)]
    for name, function, call in made:
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        if function in ("yaml.load", "yaml.load_all", "yaml.compose", "yaml.parse"):
            assert keywords["Loader"] in ("yaml.SafeLoader", "yaml.CSafeLoader"), name
        assert not function.startswith(("yaml.unsafe", "yaml.full")), name
        if function in ("np.load", "numpy.load"):
            assert keywords["allow_pickle"] == "False", name
        if function.startswith("subprocess."):
            assert "shell" not in keywords, name
