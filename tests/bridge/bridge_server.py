"""A stand-in for Apollo's cyber_bridge, written from its protocol, in a process of its own.

It shares no code with the client. What clients register, add and publish is told as lines of JSON;
commands on the standard input publish to the readers of a channel, also cut in odd places.
"""

from __future__ import annotations

import json
import socket
import sys
import threading


def take(buffer: bytearray) -> dict[str, object] | None:
    """Take one operation from the beginning of a buffer; None if it is not whole."""

    def u32(at: int) -> int:
        if at + 4 > len(buffer):
            raise IndexError
        return buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16 | buffer[at + 3] << 24

    def text(at: int) -> tuple[bytes, int]:
        size = u32(at)
        if at + 4 + size > len(buffer):
            raise IndexError
        return bytes(buffer[at + 4 : at + 4 + size]), at + 4 + size

    try:
        code = buffer[0]
        if code == 1:
            count, at = u32(1), 5
            sizes = []
            for _ in range(count):
                each, at = text(at)
                sizes.append(len(each))
            told: dict[str, object] = {"registered": sizes}
        elif code in (2, 3):
            channel, at = text(1)
            kind, at = text(at)
            word = "reader" if code == 2 else "writer"
            told = {word: channel.decode(), "type": kind.decode()}
        elif code == 4:
            channel, at = text(1)
            message, at = text(at)
            told = {"published": channel.decode(), "message": message.hex()}
        else:
            told, at = {"unknown": code}, len(buffer)
    except IndexError:
        return None
    del buffer[:at]
    return told


def serve(connection: socket.socket, readers: dict[str, list[socket.socket]]) -> None:
    """Serve one client."""
    buffer = bytearray()
    while data := connection.recv(4096):
        buffer += data
        while (told := take(buffer)) is not None:
            if "reader" in told:
                readers.setdefault(str(told["reader"]), []).append(connection)
            print(json.dumps(told), flush=True)
    print(json.dumps({"left": True}), flush=True)


def main() -> None:
    """Listen, and carry out commands until the input ends."""
    host = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    server = socket.create_server((host, int(sys.argv[1])))
    readers: dict[str, list[socket.socket]] = {}
    print(json.dumps({"port": server.getsockname()[1]}), flush=True)

    def accept() -> None:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=serve, args=(connection, readers), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    for line in sys.stdin:
        command = json.loads(line)
        if "raw" in command:
            data = bytes.fromhex(command["raw"])
        else:
            channel, message = command["channel"].encode(), bytes.fromhex(command["message"])
            data = b"\4" + len(channel).to_bytes(4, "little") + channel
            data += len(message).to_bytes(4, "little") + message
        cut = command.get("cut", len(data))
        for connection in readers[command.get("channel", "/apollo/canbus/chassis")]:
            for at in range(0, len(data), cut):
                connection.sendall(data[at : at + cut])


if __name__ == "__main__":
    main()
