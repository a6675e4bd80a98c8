"""`make docs`: brings the generated pages up to date, and builds all pages as a site, strictly.

Pages stay where they are and link to each other by their paths in the repository, as on GitHub. So
the site is built from a copy of the pages, in the same folders, with the files that they link to.
A link that leads nowhere is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import reference
from own_environment import NotInstalledError, variables

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "config", "evaluation", "benchmarks")
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")


def main() -> int:
    """Return 0 if the site was built, and what mkdocs returned otherwise."""
    reference.main()
    try:
        environment = variables("docs")
    except NotInstalledError as error:
        print(f"make docs: error: requirements/lock/docs.txt: {error}", file=sys.stderr)
        return 1
    site = ROOT / "out" / "site"
    code = build(environment, ROOT / "out" / "pages", site)
    if code == 0:
        print(f"make docs: {site / 'index.html'}")
    return code


def build(environment: dict[str, str], copies: Path, site: Path) -> int:
    """Build the site and return mkdocs' exit code, which is 1 if a link leads nowhere."""
    gather(copies)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    settings = {"FOREWARN_PAGES": str(copies), "NO_MKDOCS_2_WARNING": "true"}
    return subprocess.run(
        command, cwd=ROOT, env={**environment, **settings}, check=False
    ).returncode


def gather(target: Path) -> None:
    """Copy the pages, and the files that they link to."""
    shutil.rmtree(target, ignore_errors=True)
    for source in sorted(linked(list(pages(ROOT)))):
        copy = target / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)


def pages(root: Path) -> Iterator[Path]:
    """Yield every page of the repository."""
    yield from root.glob("*.md")
    for folder in FOLDERS:
        yield from (root / folder).rglob("*.md")


def linked(found: list[Path]) -> set[Path]:
    """Return pages with the files in the repository that they link to."""
    everything = set(found)
    for page in found:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            if path.is_file() and path.is_relative_to(ROOT):
                everything.add(path)
    return everything


if __name__ == "__main__":
    sys.exit(main())
