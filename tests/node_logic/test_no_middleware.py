"""What decides needs no ROS, so that it can be tested anywhere, each change of it as well."""

from __future__ import annotations

import subprocess
import sys

LOGIC = "monitor_node.twist_gate, monitor_node.watchdog, monitor_node.journal"
FOREIGN = (
    "import sys; print(*{name.split('.')[0] for name in sys.modules}"
    " & {'rclpy', 'forewarn_msgs', 'std_msgs'})"
)


def test_logic_imports_no_middleware() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {LOGIC}; {FOREIGN}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ""
