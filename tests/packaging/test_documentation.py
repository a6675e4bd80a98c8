"""The pages make a site: every link leads somewhere, there too."""

from __future__ import annotations

import importlib.util
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import documentation
import pytest
import reference
from own_environment import NotInstalledError, variables

from forewarn.config.fields import Section


class Page(HTMLParser):
    """What a page links to, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
                if tag not in ("a", "link") or ("rel", "stylesheet") in attrs:
                    self.loaded.add(value)
            elif name == "class" and value == "mermaid":
                self.loaded.add("https://unpkg.com/mermaid")  # the theme's script asks for it
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def test_the_reference_says_what_the_code_says() -> None:
    old = [
        str(path.relative_to(documentation.ROOT))
        for path, text in reference.written().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert not old, f"run: python scripts/reference.py, which writes {', '.join(old)}"


def test_a_key_without_a_text_is_an_error() -> None:
    class Untold(Section):
        """A section.

        Attributes
        ----------
        told : int
            It is said what this is.
        """

        told: int = 1
        untold: int = 2

    with pytest.raises(SystemExit, match=r"Untold: .* \['untold'\]"):
        reference.table(Untold)


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    if importlib.util.find_spec("pip") is None:
        pytest.skip("there is no pip to install mkdocs with")
    try:
        return variables("docs")
    except NotInstalledError as error:
        pytest.skip(f"requirements/lock/docs.txt cannot be installed here: {error}")


@pytest.mark.slow
def test_the_site_is_built_and_all_its_links_lead_somewhere(
    environment: dict[str, str], tmp_path: Path
) -> None:
    site = tmp_path / "site"
    assert documentation.build(environment, tmp_path / "pages", site) == 0
    built = {path.resolve(): Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(built) == sum(1 for _ in documentation.pages(documentation.ROOT))
    elsewhere = {link for page in built.values() for link in page.loaded if urlsplit(link).netloc}
    assert not elsewhere, "the site works without a network"
    astray = []
    for path, page in built.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            anchors = built[there].anchors if there in built else {parts.fragment}
            if not there.is_file() or (parts.fragment and unquote(parts.fragment) not in anchors):
                astray.append(f"{path.relative_to(site.resolve())}: {link}")
    assert not astray


@pytest.mark.slow
@pytest.mark.parametrize(
    "link", ["nowhere.md", "README.md#nowhere", "config"], ids=["page", "heading", "folder"]
)
def test_a_link_that_leads_nowhere_is_an_error(
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    link: str,
) -> None:
    for name in ("mkdocs.yml", "README.md"):
        (tmp_path / name).write_bytes((documentation.ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n[there]({link})\n")
    monkeypatch.setattr(documentation, "ROOT", tmp_path)
    assert documentation.build(environment, tmp_path / "pages", tmp_path / "site") != 0
    assert f"link '{link}'" in capfd.readouterr().err
