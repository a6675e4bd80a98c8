"""Has Fast DDS ask for acknowledgements at once.

A reliable Fast DDS writer asks its readers every 3 s whether they have everything, and
`Publisher.wait_for_all_acked` waits for that: lock-step would take 3 s a tick. The period is no
policy of ROS, only of Fast DDS's own profiles, which it reads when the first node is made.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
PERIOD_NS = 1_000_000
_PROFILE = """\
<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="{namespace}">
  <profiles>
    <{writer} profile_name="forewarn_lock_step" is_default_profile="true">
      <times><{period}><sec>0</sec><nanosec>{nanoseconds}</nanosec></{period}></times>
    </{writer}>
  </profiles>
</dds>
"""


@contextmanager
def prompt_acknowledgements() -> Iterator[None]:
    """Set the profile for nodes made within the block, unless the user has one already."""
    if any(variable in os.environ for variable in VARIABLES):
        yield
        return
    recent = _has_recent_fast_dds()
    variable = VARIABLES[0 if recent else 1]
    with tempfile.TemporaryDirectory(prefix="forewarn-") as folder:
        file = Path(folder) / "fastdds.xml"
        file.write_text(_profile(recent), encoding="utf-8")
        os.environ[variable] = str(file)
        try:
            yield
        finally:
            del os.environ[variable]


def _profile(recent: bool) -> str:
    """Return the profile for Fast DDS 3 (Kilted) or 2 (Humble, Jazzy)."""
    if recent:
        return _PROFILE.format(
            namespace="http://www.eprosima.com",
            writer="data_writer",
            period="heartbeat_period",
            nanoseconds=PERIOD_NS,
        )
    return _PROFILE.format(
        namespace="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles",
        writer="publisher",
        period="heartbeatPeriod",
        nanoseconds=PERIOD_NS,
    )


def _has_recent_fast_dds() -> bool:
    """Tell by the name of the installed package, which changed with version 3."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / "fastdds").is_dir() for prefix in prefixes if prefix)
