"""Outputs: plain files are replaced whole, everything else is written into and left what it is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forewarn.errors import InputError, ModelError
from forewarn.files.outputs import OutputFile, check_output, create_output, write_output

NULL, FULL = (1, 3), (1, 7)
IN_PLACE = (
    "from forewarn.files.outputs import write_output; import sys; write_output(*sys.argv[1:])"
)


def device(path: Path, numbers: tuple[int, int]) -> Path:
    """Make a device of our own: a mistake must not cost the machine its /dev/null."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(*numbers))
        path.open("wb").close()
    except PermissionError:
        pytest.skip("devices cannot be made here")
    return path


def reading(path: Path) -> tuple[threading.Thread, list[bytes]]:
    """Start to read a FIFO."""
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(path.read_bytes()))
    thread.start()
    return thread, found


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_plain_file_is_replaced_with_owner_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_output(path, "old\r\n")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    before = path.stat()
    write_output(path, "new\r\n")
    after = path.stat()
    assert path.read_bytes() == b"new\r\n"
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert left(tmp_path) == ["model.json"]


def test_a_file_stays_as_it_was_if_the_work_fails(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text("old")
    with pytest.raises(KeyError), OutputFile(path) as file:
        file.write("new")
        raise KeyError
    assert path.read_text() == "old"
    with OutputFile(path) as file:
        file.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert left(tmp_path) == ["verdicts.jsonl"]


@pytest.mark.parametrize("exists", [True, False])
def test_links_stay_and_their_target_is_replaced(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "there").mkdir()
    target, link, other = tmp_path / "there" / "real", tmp_path / "link", tmp_path / "other"
    if exists:
        target.write_text("old")
    link.symlink_to("there/real")
    other.symlink_to(link)
    check_output(other)
    write_output(other, "new")
    assert (link.is_symlink(), other.is_symlink(), target.is_symlink()) == (True, True, False)
    assert target.read_text() == "new"
    assert left(tmp_path) == ["link", "other", "there"]
    assert left(tmp_path / "there") == ["real"]


@pytest.mark.parametrize("linked", [True, False])
def test_a_device_is_written_into_and_stays(tmp_path: Path, linked: bool) -> None:
    (tmp_path / "dev").mkdir()
    null, full = device(tmp_path / "dev" / "null", NULL), device(tmp_path / "dev" / "full", FULL)
    before = [(item.stat().st_ino, item.stat().st_rdev) for item in (null, full)]
    if linked:
        for item in (null, full):
            (tmp_path / "links").mkdir(exist_ok=True)
            (tmp_path / "links" / item.name).symlink_to(item)
        null, full = tmp_path / "links" / "null", tmp_path / "links" / "full"
    check_output(null, full)
    write_output(null, "text")
    with pytest.raises(ModelError, match=r"full: cannot be written: No space left"):
        write_output(full, "text", ModelError)
    with (
        pytest.raises(InputError, match=r"full: cannot be written: No space left"),
        OutputFile(full) as file,
    ):
        for _ in range(10_000):
            file.write("a line that is long enough\n")
    with create_output(null) as stream:
        assert stream.write(b"bytes") == 5
    assert [(item.stat().st_ino, item.stat().st_rdev) for item in (null, full)] == before
    assert left(null.parent) == ["full", "null"]


def test_a_fifo_is_written_into(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    check_output(path)
    thread, found = reading(path)
    write_output(path, "text")
    thread.join()
    assert found == [b"text"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    with pytest.raises(OSError, match="no process reads it"):
        create_output(path)


def test_bytes_go_to_new_files_only(tmp_path: Path) -> None:
    path, link = tmp_path / "record.mcap", tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(FileExistsError):
        create_output(link)
    with create_output(path) as stream:
        stream.write(b"bytes")
    for taken in (path, link, tmp_path):
        with pytest.raises(FileExistsError):
            create_output(taken)
    assert path.read_bytes() == b"bytes"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_stdout_is_written_into_wherever_it_leads(tmp_path: Path, name: str, to: str) -> None:
    if name == "link":
        (tmp_path / "link").symlink_to("/dev/stdout")
        name = str(tmp_path / "link")
    code = f"print('before'); {IN_PLACE}; print('after')"
    kept = tmp_path / "kept"
    kept.write_text("kept\n")
    with kept.open("ab") as file:
        done = subprocess.run(
            [sys.executable, "-c", code, name, "text\n"],
            stdout=file if to == "file" else subprocess.PIPE,
            check=True,
        )
    if to == "file":  # appended to, as the shell's >> asked for
        assert kept.read_text() == "kept\nbefore\ntext\nafter\n"
    else:
        assert done.stdout == b"before\ntext\nafter\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that other users may enter, unlike pytest's."""
    if os.geteuid() != 0:
        pytest.skip("takes root to become someone else")
    with TemporaryDirectory() as name:
        yield Path(name)


def test_what_may_not_be_replaced_is_written_in_place(folder: Path) -> None:
    own, group = folder / "own", folder / "group"
    for path in (own, group):
        path.write_text("old and longer")
    os.chown(own, 4321, 4321)
    os.chown(group, 0, 4321)
    group.chmod(0o664)
    for mode in (0o755, 0o777):  # nothing can be made in the folder, or not with root as owner
        folder.chmod(mode)
        for path in (own, group):
            before = path.stat()
            as_other(f"write_output({str(path)!r}, {oct(mode)!r})")
            after = path.stat()
            assert path.read_text() == oct(mode)
            assert (after.st_uid, after.st_gid, after.st_mode) == (
                before.st_uid,
                before.st_gid,
                before.st_mode,
            )
    own.chmod(0o444)
    as_other(
        f"""
for act in (lambda: write_output({str(own)!r}, "x"), lambda: check_output(Path({str(own)!r}))):
    try:
        act()
    except InputError as error:
        assert "own: " in str(error)
    else:
        raise AssertionError("a file that nobody may write to was replaced")
"""
    )
    assert own.read_text() == oct(0o777)
    assert left(folder) == ["group", "own"]


def as_other(code: str) -> None:
    """Run code as a user who owns little, in a process of its own."""
    head = "from pathlib import Path\nimport forewarn.files.outputs\n"
    child = os.fork()
    if child == 0:  # sys.path may lie where the other may not look: all is imported already
        try:
            os.setgroups([])
            os.setgid(4321)
            os.setuid(4321)
            exec(head + code, {**globals(), "Path": Path})
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_file_that_is_a_mount_of_its_own_is_written_in_place(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text("old")
    outer.write_text("kept")
    script = f'mount --bind "{outer}" "{inner}" && exec "$0" "$@"'
    arguments = [sys.executable, "-c", IN_PLACE, str(inner), "new"]
    namespace = ["unshare", "--mount", "sh", "-c"]
    if subprocess.run(
        [*namespace, script.replace('exec "$0" "$@"', "true")], check=False
    ).returncode:
        pytest.skip("nothing can be mounted here")
    subprocess.run([*namespace, script, *arguments], check=True)
    assert (inner.read_text(), outer.read_text()) == ("old", "new")
    assert left(tmp_path) == ["inner", "outer"]


def test_a_draft_of_a_killed_process_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    draft = tmp_path / f".{'x' * 100}.{threading.get_native_id()}.tmp"
    draft.symlink_to(tmp_path / "elsewhere")
    write_output(path, "text")
    assert path.read_text() == "text"
    assert left(tmp_path) == [path.name]


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to(path)
    with pytest.raises(InputError, match="loop: cannot be written: Too many levels"):
        write_output(path, "text")
    assert path.is_symlink()


def test_a_disk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    try:
        os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(7, 250))  # a loop device that nobody uses
    except PermissionError:
        pytest.skip("devices cannot be made here")
    for act in (lambda: write_output(path, "text"), lambda: check_output(path)):
        with pytest.raises(InputError, match="is a disk"):
            act()


def test_a_name_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    name = b"q\xff.mcap".decode(errors="surrogateescape")
    write_output(tmp_path / "page.html", f"<p>{name}</p>")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "<p>q\\udcff.mcap</p>"
