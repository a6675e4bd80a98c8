"""Builds packages of messages for tests; what is built is kept until one changes.

A package is a folder with the files of its messages and services. `rosidl` writes their code, as it
does for colcon, and one call of the compiler makes a library of a package. colcon and CMake
took five times as long: they look for compilers and packages, and start Python, for each.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import pytest

PREFIX = Path(sys.prefix)
LIBRARY = "typesupport_fastrtps_c"
LINKS = ("generator_c", "generator_py", "typesupport_c", "typesupport_introspection_c")
"""What ROS looks for in libraries of their own: one has it all, and links have the other names."""


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
    inputs = [sys.version.encode(), Path(__file__).read_bytes(), *texts]
    digest = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:16]
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{digest}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another worker may be building them
        if not (kept / digest).is_dir():
            pytest.importorskip("rosidl_cli", reason="`make setup` installs it")
            # Whole or not at all: whoever builds may be stopped.
            with tempfile.TemporaryDirectory(dir=kept) as draft:
                whole = Path(draft) / "install"
                # Templates leave objects behind that complain as their process ends.
                command = [sys.executable, __file__, sources, whole, work]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stdout + done.stderr
                whole.rename(kept / digest)
    return kept / digest


def _build(sources: Path, prefix: Path, work: Path) -> None:
    lib = prefix / "lib"
    modules = lib / "python{}.{}".format(*sys.version_info) / "site-packages"
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    for folder in (modules, index):
        folder.mkdir(parents=True)
    for name in (package.name for package in sorted(sources.iterdir())):
        code = _generate(sources / name, prefix / "share" / name, work)
        shutil.copytree(work / "python" / name, modules / name)
        library = lib / f"lib{name}__rosidl_{LIBRARY}.so"
        _compile(code, work, library)
        for part in LINKS:
            (lib / f"lib{name}__rosidl_{part}.so").symlink_to(library.name)
        module = modules / name / f"{name}_s__rosidl_typesupport_c.so"
        module.symlink_to(f"../../../{library.name}")
        (index / name).touch()


def _generate(package: Path, share: Path, work: Path) -> list[Path]:
    """Write the code of a package, and what is installed of its messages; returns the code."""
    # By name `rosidl` finds each of these twice: the wheels announce them twice.
    from rosidl_adapter.cli import TranslateMsgToIDL, TranslateSrvToIDL
    from rosidl_generator_c.cli import GenerateC
    from rosidl_generator_py.cli import GeneratePython
    from rosidl_generator_type_description.cli import HashTypeDescription
    from rosidl_typesupport_c.cli import GenerateCTypesupport
    from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport
    from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport

    shutil.copytree(package, share)
    known = sorted({str(path.parents[1]) for path in PREFIX.glob("share/*/*/*.idl")})

    def files(suffix: str) -> list[str]:
        return [f"{share}:{path.relative_to(share)}" for path in sorted(share.glob("*/*" + suffix))]

    for translator in (TranslateMsgToIDL("msg"), TranslateSrvToIDL("srv")):
        translator.translate(package.name, files(f".{translator.input_format}"), known, share)
    what = (package.name, files(".idl"), known)
    hashes = HashTypeDescription("hash").generate_type_hashes(*what, share)
    written = [
        *GenerateC("c").generate(*what, work / "c" / package.name, hashes),
        *GeneratePython("python", typesupport_implementations=["rosidl_typesupport_c"]).generate(
            *what, work / "python" / package.name
        ),
    ]
    for generator in (
        GenerateCTypesupport("dispatch"),
        GenerateFastRTPSCTypesupport("fastrtps"),
        GenerateIntrospectionCTypesupport("introspection"),
    ):
        written += generator.generate(*what, work / generator.name / package.name)
    (work / "python" / package.name / "__init__.py").touch()
    return [path for path in map(Path, written) if path.suffix in (".c", ".cpp")]


def _compile(code: list[Path], work: Path, library: Path) -> None:
    """Make one library; files that the compiler reads together share the headers."""
    files = []
    for suffix in (".c", ".cpp"):
        together = work / f"all{suffix}"
        same = [path for path in code if path.suffix == suffix]
        alone = [path for path in same if path.name.endswith("__description.c")]
        together.write_text("".join(f'#include "{p}"\n' for p in same if p not in alone))
        files += [together, *alone]
    headers = [*work.iterdir(), PREFIX / "include", *(PREFIX / "include").iterdir()]
    python = [sysconfig.get_path("include"), np.get_include()]
    lib = PREFIX / "lib"
    needed = [*lib.glob("lib*__rosidl_*.so"), *lib.glob("librosidl_*.so"), lib / "libfastcdr.so"]
    subprocess.run(
        [
            *("cc", "-shared", "-fPIC", "-w", *(f"-I{path}" for path in [*headers, *python])),
            *("-o", library, *files, "-Wl,--as-needed", *needed, lib / "librcutils.so"),
            *("-lstdc++", f"-Wl,-rpath,{lib}", f"-Wl,-soname,{library.name}"),
        ],
        check=True,
    )


if __name__ == "__main__":
    _build(*map(Path, sys.argv[1:]))
