"""A record made on one type of processor replays to the same bits on others.

The environment of a process tells OpenBLAS, the C library and numpy which processor to take this
one for. So they add and round as they would there.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from forewarn.cli import main

STORE = get_typestore(Stores.ROS2_HUMBLE)
ARRAY = "std_msgs/msg/Float64MultiArray"
START_NS = 1_700_000_000_000_000_000
SESSION = Path(__file__).with_name("session.py")
VARIANTS = {
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "no FMA": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"},
    "no AVX512": {
        "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
    },
}
# A third of the samples carry what exp or sin give here: a last bit decides what holds.
CONFIG = """\
version: 1
rate: 10
signals:
  data: {topic: /data, type: std_msgs/msg/Float64MultiArray, value: data, timeout: 0.5}
  grown: {value: "exp(data[0])"}
  angle: {value: "data[2]"}
  load: {value: "data[4]"}
predicates:
  over: grown > data[1]
  ahead: sin(angle) > data[3]
  busy: over and load > 1
  high: load > 1.5
bins:
  load: [0.3, 0.6, 1]
bounds: {samples: 50}
properties:
  calm:
    formula: always(high implies eventually[0:0.5](load<0.6))
    horizon: 3.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.1}
  never:
    formula: always(not (busy and ahead))
    horizon: 20.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.1}
    enter: 1
"""


class Message(NamedTuple):
    time_ns: int
    topic: str
    msgtype: str
    data: bytes


def run(variant: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **VARIANTS.get(variant, {})}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or (done.returncode == 1 and arguments[0] == "-m"), done.stderr
    return done


@cache
def telling(function: str, variant: str) -> list[float]:
    """Return arguments for which a function of numpy rounds otherwise on a variant, if any do."""
    code = (
        "import numpy as np; x = np.random.default_rng(1).uniform(-3, 3, 20000)"
        f"; print([np.{function}(each).item().hex() for each in x])"
    )
    here, there = (
        np.array(ast.literal_eval(run(name, "-c", code).stdout)) for name in ("", variant)
    )
    arguments = np.random.default_rng(1).uniform(-3, 3, 20000)
    found = arguments[here != there]
    return list(found if len(found) else arguments)


def messages(seed: int, seconds: int) -> list[Message]:
    draw = np.random.default_rng(seed)
    exps, sins = telling("exp", "no AVX512"), telling("sin", "no FMA")
    layout = STORE.types["std_msgs/msg/MultiArrayLayout"]([], 0)
    found, load = [], 0.5
    for i in range(10 * seconds):
        load = abs(0.8 * load + draw.normal() * 0.5)
        a, c = draw.choice(exps), draw.choice(sins)
        grown = np.exp(a) * draw.choice([0.5, 1.0, 2.0])
        height = np.sin(c) + draw.choice([-0.5, 0.0, 0.5])
        data = np.array([a, grown, c, height, load])
        text = STORE.serialize_cdr(STORE.types[ARRAY](layout, data), ARRAY)
        found.append(Message(START_NS + i * 100_000_000, "/data", ARRAY, bytes(text)))
    return found


@pytest.fixture(scope="module")
def folder(record: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a monitor file, a model and a recording."""
    folder = tmp_path_factory.mktemp("processors")
    (folder / "monitor.yaml").write_text(CONFIG)
    train = record(folder / "train.mcap", messages(1, 300))
    record(folder / "bag.mcap", messages(2, 40))
    model = ["-c", str(folder / "monitor.yaml"), "-o", str(folder / "model.json"), "-q"]
    assert main(["learn", str(train), *model]) == 0
    return folder


@pytest.mark.long
def test_a_record_of_one_processor_has_the_same_bits_on_others(
    folder: Path, our_messages: None
) -> None:
    flags = Path("/proc/cpuinfo").read_text().split()
    names = list(VARIANTS)
    records = {name: folder / f"{name}.mcap" for name in names}
    old = folder / "old.mcap"
    run(names[0], SESSION, folder, old, "old")
    for name, path in records.items():
        run(name, SESSION, folder, path)
    different, flipped, unlike = 0.0, set[str](), 0
    for name in names:
        done = run(name, "-m", "forewarn", "verify", "--json", *records.values(), old)
        told: dict[str, Any] = json.loads(done.stdout)
        for path in records.values():
            assert told[str(path)]["differences"] == [], f"{path.stem} on {name}"
            assert told[str(path)]["ticks"] == 399
            taken = told[str(path)]["taken"]
            assert taken["tables"] == 1
            different = max(different, taken["difference"])
            flipped |= taken["conditions"].keys()
        own = told[str(records[name])]["taken"]
        assert (own["difference"], own["conditions"]) == (0.0, {})
        outdated = bool(told[str(old)]["differences"])
        assert done.returncode == outdated
        assert not outdated or name != names[0]
        unlike += outdated
        if outdated:
            assert "the record has no risk tables" in done.stderr
    if "avx512f" in flags:  # otherwise nothing shows that the environment had any effect
        assert 0 < different < 1e-12
        assert flipped == {"predicates.over", "predicates.busy", "predicates.ahead"}
        assert unlike >= 2
