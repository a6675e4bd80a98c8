"""Small networks for SUMO: one junction, or two in a row, whose arms end where one turns round.

They simulate faster than the town, and the ego comes back to the same junction twice a minute.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evaluation.sumo.network import EGO, run_tool, sumo_home

OPPOSITE = {"n": "s", "s": "n", "e": "w", "w": "e"}
# Where a turn leads, by the arm that one comes from (traffic keeps to the right).
LEFT_OF = {"w": "n", "s": "w", "e": "s", "n": "e"}
RIGHT_OF = {"w": "s", "s": "e", "e": "n", "n": "w"}
# Where arms end, in units of the western one.
SIDES = {"n": (0.0, 0.75), "s": (0.0, -0.9), "w": (-1.0, 0.0), "e": (0.6, 0.0)}
# The late go on at yellow, so that the ego may follow at red; the pushing enter a jam.
OTHERS = {
    name: f'<vType id="{name}" vClass="passenger" sigma="0.6" speedDev="0.1"{more}/>'
    for name, more in {
        "other": "",
        "late": ' jmDriveAfterYellowTime="3" jmDriveAfterRedTime="1"',
        "pushing": ' jmIgnoreKeepClearTime="1"',
    }.items()
}


@dataclass(frozen=True)
class Crossing:
    """A junction with traffic lights, alone or between two without, in a row from west to east."""

    # Metres to where the western arm ends; the others are shorter, so that the ego does not come
    # back in step with the lights.
    arm: float = 150.0
    link: float | None = None  # metres between two junctions; None for one junction
    cycle: int = 30  # seconds of the lights' cycle, and of the yellow in it
    yellow: int = 3


def build_crossing(crossing: Crossing, folder: Path) -> Path:
    """Generate the network once and return its file."""
    name = f"crossing-{crossing.arm:g}-{crossing.link or 0:g}-{crossing.cycle}-{crossing.yellow}"
    path = folder / f"{name}.net.xml"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    nodes, edges = _plain(crossing)
    node_file, edge_file = folder / f"{name}.nod.xml", folder / f"{name}.edg.xml"
    node_file.write_text("\n".join(["<nodes>", *nodes, "</nodes>"]), encoding="utf-8")
    edge_file.write_text("\n".join(["<edges>", *edges, "</edges>"]), encoding="utf-8")
    options = {
        "--node-files": node_file,
        "--edge-files": edge_file,
        "--tls.cycle.time": crossing.cycle,
        "--tls.yellow.time": crossing.yellow,
        "--tls.left-green.time": 0,  # left turns give way to those who come towards them
        "--default.junctions.radius": 8,
        "--output-file": path,
    }
    values = [str(item) for pair in options.items() for item in pair]
    command = [str(sumo_home() / "bin" / "netconvert"), *values]
    run_tool([*command, "--no-turnarounds.tls", "--no-turnarounds.except-deadend"])
    return path


def _plain(crossing: Crossing) -> tuple[list[str], list[str]]:
    centres = _centres(crossing)
    nodes, edges = [], []
    for centre, x in centres.items():
        kind = "traffic_light" if x == 0 else "priority"
        nodes.append(f'<node id="{centre}" x="{x}" y="0" type="{kind}"/>')
        for side, (dx, dy) in SIDES.items():
            if (side == "w" and centre != min(centres)) or (side == "e" and centre != max(centres)):
                continue
            end = f"{centre}{side}"
            nodes.append(f'<node id="{end}" x="{x + dx * crossing.arm}" y="{dy * crossing.arm}"/>')
            edges += [_edge(end, centre, side), _edge(centre, end, side)]
    for west, east in pairwise(centres):
        edges += [_edge(west, east, "e"), _edge(east, west, "w")]
    return nodes, edges


def _centres(crossing: Crossing) -> dict[str, float]:
    """Return the junctions and where they lie; the one with lights lies at 0."""
    if crossing.link is None:
        return {"a": 0.0}
    return {"a": -crossing.link, "b": 0.0, "c": crossing.link}


def _edge(source: str, target: str, side: str) -> str:
    priority = 2 if side in "ew" else 1
    return (
        f'<edge id="{source}-{target}" from="{source}" to="{target}" numLanes="1"'
        f' speed="13.89" priority="{priority}"/>'
    )


def ego_route(crossing: Crossing, turns: str, rng: random.Random, passes: int = 40) -> list[str]:
    """Return the edges of an ego that comes back again and again.

    Each time `rng` draws a turn out of `turns`, letters out of `slr`.
    """
    if crossing.link is not None:
        east, west = ["aw-a", "a-b", "b-c", "c-ce"], ["ce-c", "c-b", "b-a", "a-aw"]
        return (east + west) * passes if rng.random() < 0.5 else (west + east) * passes
    arm = rng.choice(sorted(OPPOSITE))
    edges = []
    for _ in range(passes):
        turn = rng.choice(turns)
        target = {"s": OPPOSITE, "l": LEFT_OF, "r": RIGHT_OF}[turn][arm]
        edges += [f"a{arm}-a", f"a-a{target}"]
        arm = target
    return edges


def write_traffic(
    crossing: Crossing,
    period: float,
    through: float,
    duration: float,
    path: Path,
    others: str = "other",
) -> Path:
    """Write flows between all arms.

    `period` are the mean seconds between two departures on one arm, for `duration` seconds;
    `through` is the share of those who go straight on; `others`, a key of `OTHERS`, is how they
    drive.
    """
    lines = ["<routes>", OTHERS[others]]
    for source, target, share in _demand(crossing, through):
        lines.append(
            f'<flow id="{source}{target}" type="{others}" begin="0" end="{duration}"'
            f' period="exp({share / period:.5f})"'
            f' from="{source}-{source[0]}" to="{target[0]}-{target}"'
            ' departSpeed="max" departPos="random_free"/>'
        )
    path.write_text("\n".join([*lines, "</routes>"]), encoding="utf-8")
    return path


def _demand(crossing: Crossing, through: float) -> list[tuple[str, str, float]]:
    """Return the flows: from where, to where, and their share of an arm's departures."""
    if crossing.link is not None:
        along = [("aw", "ce"), ("ce", "aw")]
        across = [(f"{c}{start}", f"{c}{OPPOSITE[start]}") for c in "abc" for start in "ns"]
        return [(*pair, through) for pair in along] + [(*pair, 1 - through) for pair in across]
    return [
        (f"a{a}", f"a{b}", through if OPPOSITE[a] == b else (1 - through) / 2)
        for a in OPPOSITE
        for b in OPPOSITE
        if a != b
    ]


def write_ego(edges: list[str], attributes: dict[str, str], depart: float, path: Path) -> Path:
    """Write the ego's type and route."""
    kind = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    path.write_text(
        f"<routes>\n<vType {kind}/>\n"
        f'<vehicle id="{EGO}" type="{attributes["id"]}" depart="{depart:g}" departLane="best"'
        f' departPos="random_free"><route edges="{" ".join(edges)}"/></vehicle>\n</routes>\n',
        encoding="utf-8",
    )
    return path
