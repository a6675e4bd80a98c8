"""A small Apollo for tests and benchmarks: a process that publishes and listens over real Cyber RT.

It publishes chassis messages of Apollo's layout at a rate, and tells what planning would get: on
the pad channel, on that of planning commands, and through the service of actions.
Commands are lines of JSON on the standard input, what it has to tell are lines on the output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

CHASSIS, PAD = "/apollo/canbus/chassis", "/apollo/planning/pad"
ACTION, PLANNING = "/apollo/external_command/action", "/apollo/planning/command"


def tell(**what: Any) -> None:
    """Print a line for the test."""
    print(json.dumps(what), flush=True)


class Apollo:
    """What is published, and the thread that does it."""

    def __init__(self, rate: float) -> None:
        from pycyber import cyber

        from apollo_bridge.layouts import own_class

        cyber.init("small_apollo")
        self.chassis = own_class("apollo.canbus.Chassis")
        self.pad = own_class("apollo.planning.PadMessage")
        self.node = cyber.Node("small_apollo")
        self.writer = self.node.create_writer(CHASSIS, self.chassis, 10)
        self.writers = {CHASSIS: self.writer}
        self.action = own_class("apollo.external_command.ActionCommand")
        self.node.create_rawdata_reader(PAD, self.on_pad)
        self.node.create_rawdata_reader(PLANNING, lambda data: tell(planning=data.hex()))
        # The real answer is a CommandStatus; what is in it is nobody's business here.
        self.node.create_service(ACTION, self.action, self.action, self.on_action)
        self.period = 1.0 / rate if rate > 0 else 1.0
        self.speed = 0.0
        self.number = 0
        self.changed = False
        self.counting = False
        self.paused = threading.Event()
        if rate <= 0:  # the test publishes
            self.paused.set()

    def on_pad(self, data: bytes) -> None:
        """Tell about a command."""
        now = time.time_ns()
        message = self.pad.FromString(data)
        tell(pad=message.action, number=message.header.sequence_num, time=now)

    def on_action(self, message: Any) -> Any:
        """Tell about a call, and answer."""
        tell(action=message.command, number=message.command_id)
        return message

    def write(self) -> None:
        """Publish one chassis message; tell when it is the first of its speed."""
        self.number += 1
        if self.counting:
            self.speed, self.changed = float(self.number), True
        message = self.chassis(speed_mps=self.speed, driving_mode=1)
        message.header.sequence_num = self.number
        changed, self.changed = self.changed, False
        now = time.time_ns()
        message.header.timestamp_sec = now / 1e9
        self.writer.write(message)
        if changed:
            tell(wrote=self.speed, time=now)

    def publish(self, channel: str, message: str, data: str, file: str | None) -> None:
        """Publish a message that the test has made, and maybe defines, in hexadecimal."""
        from google.protobuf import descriptor_pb2

        from apollo_bridge.layouts import own_class
        from apollo_bridge.messages import Pool

        if file is None:
            kind = own_class(message)
        else:
            defined = descriptor_pb2.FileDescriptorProto.FromString(bytes.fromhex(file))
            kind = Pool([defined]).message_class(message)
        if channel not in self.writers:
            self.writers[channel] = self.node.create_writer(channel, kind, 10)
        self.writers[channel].write(kind.FromString(bytes.fromhex(data)))

    def run(self) -> None:
        """Publish at the rate."""
        due = time.monotonic()
        while True:
            if not self.paused.is_set():
                self.write()
            due += self.period
            threading.Event().wait(max(0.0, due - time.monotonic()))

    def serve(self) -> None:
        """Carry out commands until the input ends."""
        threading.Thread(target=self.run, daemon=True).start()
        tell(ready=True)
        for line in sys.stdin:
            command = json.loads(line)
            if "speed" in command:
                self.speed, self.changed = command["speed"], True
            if "counting" in command:
                self.counting = command["counting"]
            if "publish" in command:
                self.publish(
                    command["publish"], command["message"], command["data"], command.get("file")
                )
            if "pause" in command:
                (self.paused.set if command["pause"] else self.paused.clear)()
            if "burst" in command:
                for _ in range(command["burst"]):
                    self.write()
                    threading.Event().wait(command.get("gap", 0.0))
                tell(burst=self.number)


if __name__ == "__main__":
    Apollo(float(sys.argv[1])).serve()
    os._exit(0)
