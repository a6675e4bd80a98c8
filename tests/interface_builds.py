"""Builds packages of messages with colcon, for tests; what is built is kept until one changes.

A package is a package.xml and the files of its messages and services.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

# Python alone reads these messages: what C++ needs takes as long again. Files that a compiler reads
# together share the headers, which take most of its time.
LISTS = """\
cmake_minimum_required(VERSION 3.16)
project({name})
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
foreach(needed {needed})
  find_package(${{needed}} REQUIRED)
endforeach()
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "cpp")
rosidl_generate_interfaces(${{PROJECT_NAME}} {files} DEPENDENCIES {needed})
foreach(part typesupport_c typesupport_fastrtps_c typesupport_introspection_c generator_py)
  set_target_properties(
    ${{PROJECT_NAME}}__rosidl_${{part}} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10
  )
endforeach()
ament_export_dependencies(rosidl_default_runtime)
ament_package()
"""


def built(sources: Path, kept: Path, work: Path) -> Path:
    """Return the prefix at which the packages in a folder are installed.

    Parameters
    ----------
    sources : Path
        The folder.
    kept : Path
        Where prefixes are kept, one for each state of the sources.
    work : Path
        An empty folder to build in.
    """
    texts = [path.read_bytes() for path in sorted(sources.rglob("*")) if path.is_file()]
    inputs = [sys.version.encode(), LISTS.encode(), *texts]
    digest = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:16]
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{digest}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another worker may be building them
        if not (kept / digest / "share").is_dir():
            _build(sources, kept / digest, work)
    return kept / digest


def _write_lists(manifest: Path) -> None:
    """Write the CMakeLists.txt of a package beside its manifest."""
    package, folder = ElementTree.parse(manifest).getroot(), manifest.parent
    files = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.glob("*/*")
        if path.suffix in {".msg", ".srv", ".idl"}
    )
    needed = " ".join(depend.text or "" for depend in package.iter("depend"))
    lists = LISTS.format(name=package.findtext("name"), needed=needed, files=" ".join(files))
    (folder / "CMakeLists.txt").write_text(lists)


def _build(sources: Path, prefix: Path, work: Path) -> None:
    colcon = Path(sysconfig.get_path("scripts")) / "colcon"
    if not colcon.exists():
        pytest.skip("colcon is not installed: `make setup` installs it")
    shutil.copytree(sources, work / "src", ignore=shutil.ignore_patterns("COLCON_IGNORE"))
    for manifest in (work / "src").rglob("package.xml"):
        _write_lists(manifest)
    variables = {
        **os.environ,
        "AMENT_PREFIX_PATH": sys.prefix,
        "CMAKE_PREFIX_PATH": sys.prefix,
        "PATH": os.pathsep.join([str(colcon.parent), os.environ.get("PATH", "")]),
    }
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        [
            *(colcon, "--log-base", "log", "build", "--base-paths", "src", "--build-base", "build"),
            *("--merge-install", "--install-base", work / "install"),
            *("--cmake-args", f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=OFF"),
        ],
        cwd=work,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory(dir=prefix.parent) as draft:
        # Whole or not at all: whoever builds may be stopped.
        whole = shutil.copytree(work / "install", Path(draft) / "install", symlinks=True)
        whole.rename(prefix)
