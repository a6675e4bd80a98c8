"""A small town for SUMO: streets, traffic lights, crossings, random traffic and an imperfect ego.

Everything is generated offline by SUMO's own tools (netgenerate, randomTrips.py) and depends on
the seeds alone, so that a run can be made again from its provenance.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

EGO = "ego"

# Careless about others at junctions and about lights that have just changed, close behind, fast:
# so that rules are broken now and then.
EGO_TYPE = {
    "id": "imperfect",
    "vClass": "passenger",
    "length": "4.6",
    "width": "1.8",
    "tau": "0.7",
    "sigma": "0.8",
    "speedFactor": "1.3",
    "speedDev": "0",
    "jmIgnoreFoeProb": "0.5",
    "jmIgnoreJunctionFoeProb": "0.5",
    "jmDriveAfterRedTime": "8",
}


@dataclass(frozen=True)
class Town:
    """What the generated town looks like; the seed perturbs where its junctions lie."""

    seed: int = 1
    junctions: int = 4  # along each side of the grid
    block: float = 110.0  # mean metres between neighbouring junctions
    vehicle_period: float = 1.5  # mean seconds between two departures
    pedestrian_period: float = 1.0


@dataclass(frozen=True)
class Scenario:
    """Files that SUMO needs for one run."""

    network: Path
    routes: tuple[Path, ...]


def sumo_home() -> Path:
    """Return the folder of the installed SUMO: of the PyPI wheel, or what SUMO_HOME says.

    The wheel goes first: importing its libsumo points SUMO_HOME at a folder without the programs.
    """
    try:
        import sumo
    except ImportError:
        return Path(os.environ["SUMO_HOME"])
    return Path(sumo.SUMO_HOME)


def build_network(town: Town, folder: Path) -> Path:
    """Generate the street network once and return its file."""
    path = folder / f"town-{town.seed}.net.xml"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    options = {
        "--seed": town.seed,
        "--grid.number": town.junctions,
        "--grid.length": town.block,
        "--perturb-x": "norm(0,12)",
        "--perturb-y": "norm(0,12)",
        "--default.lanenumber": 2,
        "--default.speed": 13.89,
        "--default-junction-type": "traffic_light",
        "--default.junctions.radius": 6,
        "--tls.cycle.time": 40,
        "--output-file": path,
    }
    flags = ("grid", "no-turnarounds", "sidewalks.guess", "crossings.guess", "walkingareas")
    values = [str(item) for pair in options.items() for item in pair]
    command = [str(sumo_home() / "bin" / "netgenerate"), *(f"--{flag}" for flag in flags)]
    run_tool([*command, *values])
    return path


def build_scenario(
    town: Town,
    seed: int,
    duration: float,
    folder: Path,
    networks: Path,
    ego_type: Mapping[str, str] = EGO_TYPE,
) -> Scenario:
    """Generate the traffic of one run.

    The seed is that of traffic, pedestrians and the ego's route; they depart for `duration`
    seconds. Route files go into `folder`, generated networks are kept in `networks`; `ego_type` has
    SUMO's parameters of the ego.
    """
    folder.mkdir(parents=True, exist_ok=True)
    network = build_network(town, networks)
    on_foot = ("--pedestrians", "--prefix", "p")
    trips = [
        _random_trips(network, folder / f"{who}.rou.xml", seed, duration, period, extra)
        for who, period, extra in (
            ("vehicles", town.vehicle_period, ()),
            ("pedestrians", town.pedestrian_period, on_foot),
        )
    ]
    ego = folder / "ego.rou.xml"
    ego.write_text(_ego_route(network, random.Random(seed), ego_type), encoding="utf-8")
    return Scenario(network, (*trips, ego))


def _random_trips(
    network: Path, output: Path, seed: int, duration: float, period: float, extra: Sequence[str]
) -> Path:
    command = [
        sys.executable,
        str(sumo_home() / "tools" / "randomTrips.py"),
        *("--net-file", str(network)),
        *("--route-file", str(output)),
        *("--output-trip-file", str(output.with_suffix(".trips.xml"))),
        *("--seed", str(seed)),
        *("--begin", "0", "--end", str(duration), "--period", str(period)),
        *("--min-distance", "200", "--validate"),
        *extra,
    ]
    run_tool(command)
    # --validate copies the vType elements it met into the routes, and SUMO loads no type twice.
    tree = ET.parse(output)
    root = tree.getroot()
    for element in root.findall("vType"):
        root.remove(element)
    tree.write(output)
    return output


def _ego_route(
    network: Path, rng: random.Random, ego_type: Mapping[str, str], edges: int = 200
) -> str:
    successors: dict[str, list[str]] = {}
    for connection in ET.parse(network).getroot().iter("connection"):
        source, target = connection.attrib["from"], connection.attrib["to"]
        if not (source.startswith(":") or target.startswith(":")):
            successors.setdefault(source, []).append(target)
    drivable = {edge: sorted(set(targets)) for edge, targets in successors.items()}
    route = [rng.choice(sorted(drivable))]
    while len(route) < edges:
        route.append(rng.choice(drivable[route[-1]]))
    attributes = " ".join(f'{name}="{value}"' for name, value in ego_type.items())
    return (
        f"<routes>\n  <vType {attributes}/>\n"
        f'  <vehicle id="{EGO}" type="{ego_type["id"]}" depart="40" departLane="best"'
        ' departPos="random_free">\n'
        f'    <route edges="{" ".join(route)}"/>\n  </vehicle>\n</routes>\n'
    )


def run_tool(command: list[str]) -> None:
    """Run one of SUMO's programs; raises RuntimeError with what it said."""
    environment = {**os.environ, "SUMO_HOME": str(sumo_home())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(
            f"{Path(command[0]).name} failed with {done.returncode}: {done.stderr.strip()}"
        )
