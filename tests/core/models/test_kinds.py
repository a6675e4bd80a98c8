"""What is no plain file is refused as a model before anything of it is read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from forewarn.errors import ModelError
from forewarn.models.file import load_model


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    os.mkfifo(path)
    with pytest.raises(ModelError, match="is no plain file"):
        load_model(path)


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("model.json")
        with pytest.raises(ModelError, match="is no plain file"):
            load_model("model.json")


def test_a_link_to_a_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.symlink_to("/dev/zero")
    with pytest.raises(ModelError, match="is no plain file"):
        load_model(path)
