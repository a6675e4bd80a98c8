"""Files beside the modules are installed with them."""

from __future__ import annotations

import configparser
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "forewarn"
BUILT = {".py", ".pyc", ".c", ".so"}


def test_every_file_of_the_library_that_is_no_module_is_package_data() -> None:
    cfg = configparser.ConfigParser()
    cfg.read(SOURCES / "setup.cfg")
    patterns = [word.strip() for word in cfg["options.package_data"]["*"].split(",")]
    root = SOURCES / "src" / "forewarn"
    packages = [root, *(one_path.parent for one_path in root.rglob("__init__.py"))]
    covered = {
        found for package in packages for pattern in patterns for found in package.glob(pattern)
    }
    files = {
        path
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in BUILT and "__pycache__" not in path.parts
    }
    assert files == covered & files
    assert {"page.css", "page.js", "timeline.js", "py.typed"} <= {path.name for path in files}
