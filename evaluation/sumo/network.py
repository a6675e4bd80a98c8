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
from collections.abc import Mapping
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
    """What the generated town looks like.

    Attributes
    ----------
    seed
        Seed of the street network (positions of the junctions are perturbed).
    junctions
        Junctions along each side of the grid.
    block
        Mean distance of neighbouring junctions in metres.
    vehicle_period, pedestrian_period
        Mean time between two departures in seconds.
    """

    seed: int = 1
    junctions: int = 4
    block: float = 110.0
    vehicle_period: float = 1.5
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
    flags = [
        "--grid",
        "--no-turnarounds",
        "--sidewalks.guess",
        "--crossings.guess",
        "--walkingareas",
    ]
    values = [str(item) for pair in options.items() for item in pair]
    run_tool([str(sumo_home() / "bin" / "netgenerate"), *flags, *values])
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

    Parameters
    ----------
    town
        The street network and the density of its traffic.
    seed
        Seed of traffic, pedestrians and the ego's route.
    duration
        Seconds for which new vehicles and pedestrians depart.
    folder
        Where the run's route files go.
    networks
        Where generated networks are kept.
    ego_type
        SUMO's parameters of the ego.
    """
    folder.mkdir(parents=True, exist_ok=True)
    network = build_network(town, networks)
    vehicles = _random_trips(
        network, folder / "vehicles.rou.xml", seed, duration, town.vehicle_period, []
    )
    pedestrians = _random_trips(
        network,
        folder / "pedestrians.rou.xml",
        seed,
        duration,
        town.pedestrian_period,
        ["--pedestrians", "--prefix", "p"],
    )
    ego = folder / "ego.rou.xml"
    ego.write_text(_ego_route(network, random.Random(seed), ego_type), encoding="utf-8")
    return Scenario(network, (vehicles, pedestrians, ego))


def _random_trips(
    network: Path, output: Path, seed: int, duration: float, period: float, extra: list[str]
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
    _strip_vehicle_types(output)
    return output


def _strip_vehicle_types(path: Path) -> None:
    # --validate copies the vType elements it met into the routes, and SUMO loads no type twice.
    tree = ET.parse(path)
    root = tree.getroot()
    for element in root.findall("vType"):
        root.remove(element)
    tree.write(path)


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
