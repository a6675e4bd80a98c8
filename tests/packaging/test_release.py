"""What a release needs: one version everywhere, manifests for bloom, files that GitHub reads."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from catkin_pkg.changelog import get_changelog_from_path
from catkin_pkg.package import parse_package

import forewarn

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard",
    "ros2_ws/src/forewarn_msgs", "ros2_ws/src/forewarn_bringup",
)  # fmt: skip
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_version_is_that_of_setup_cfg() -> None:
    text = (ROOT / "forewarn" / "setup.cfg").read_text()
    found = re.findall(r"^version = (.*)$", text, re.M)
    assert [forewarn.__version__] == found == [version("forewarn")]
    assert str(loaded(ROOT / "CITATION.cff")["version"]) == forewarn.__version__


@pytest.mark.parametrize("folder", PACKAGES)
def test_bloom_finds_what_it_needs(folder: str) -> None:
    # Parsing validates: names, e-mail addresses, versions, licences, dependencies on itself.
    package = parse_package(str(ROOT / folder))
    assert package.version == forewarn.__version__
    cited = loaded(ROOT / "CITATION.cff")
    [author] = cited["authors"]
    assert package.maintainers
    for person in (*package.maintainers, *package.authors):
        assert (person.name, person.email) == (author["name"], author["email"])
    # Where the repository lies is said in one place, and nowhere while that is not known.
    assert {url.url for url in package.urls} <= {cited.get("repository-code")}
    assert package.licenses
    assert package.description.endswith(".")
    assert package.get_build_type() in ("ament_python", "ament_cmake")
    changelog = get_changelog_from_path(str(ROOT / folder), package.name)
    assert changelog is not None, "no CHANGELOG.rst in the format of catkin"
    told = {name: content for name, _, content in changelog.foreach_version()}
    # The parser passes over what is not released yet.
    assert re.search(r"^Forthcoming\n-+\n\* ", changelog.rst, re.M) or told[package.version]


def test_the_citation_is_complete() -> None:
    # Validated once with cffconvert; this holds the keys that the format asks for.
    found = loaded(ROOT / "CITATION.cff")
    assert found["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= found.keys()
    assert found["license"] == "Apache-2.0"
    assert all("name" in author or "family-names" in author for author in found["authors"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_is_there(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else {*needed} <= jobs.keys(), name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), f"{name}: {step}"
            if "uses" in step:
                assert re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", step["uses"]), step["uses"]
            for script in re.findall(r"scripts/[\w.]+", str(step)):
                assert (ROOT / script).exists(), script


def test_a_release_builds_tries_attests_and_publishes_in_this_order() -> None:
    jobs = loaded(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert {*jobs["try"]["needs"]} == {"wheels", "pure"}
    assert jobs["publish"]["needs"] == "try"
    assert "tag" in jobs["publish"]["if"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    used = [step.get("uses", "").partition("@")[0] for step in jobs["publish"]["steps"]]
    attested = used.index("actions/attest-build-provenance")
    assert attested < used.index("pypa/gh-action-pypi-publish")
    assert {str(v) for v in jobs["try"]["strategy"]["matrix"]["python"]} == {
        "3.10", "3.11", "3.12", "3.13", "3.14",
    }  # fmt: skip


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_what_github_asks_for(path: Path) -> None:
    form = loaded(path)
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    names = [field["id"] for field in fields]
    assert len({*names}) == len(names)
    for field in fields:
        assert field["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert field["attributes"]["label"]


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_people_are_told_where_to_write(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.search(r"Report a vulnerability|write to a maintainer", text)
