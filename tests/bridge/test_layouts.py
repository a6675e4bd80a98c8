"""The bridge's own layouts against the descriptors that a real Apollo embedded in its record."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

import apollo_bridge
from apollo_bridge.layouts import own_pool
from apollo_bridge.messages import Pool
from apollo_bridge.records import pool_of
from apollo_bridge.sections import RecordFile

# Added by versions after the one that wrote the record.
LATER = {"TURN_HAZARD_WARNING", "OPEN_SPACE", "EDGE_FOLLOW", "RELATIVE_CONTROL"}


@pytest.fixture(scope="module")
def real_pools(example_record: Path) -> list[Pool]:
    return [pool_of(info.descriptors) for info in RecordFile(example_record).channels.values()]


def real_descriptor(pools: list[Pool], name: str) -> object:
    for pool in pools:
        try:
            return pool.descriptor(name)
        except ValueError:
            continue
    return None


def test_fields_have_the_numbers_types_and_defaults_of_apollo(real_pools: list[Pool]) -> None:
    compared = 0
    for file in own_pool().files.values():
        for message in file.message_type:
            ours = own_pool().descriptor(f"{file.package}.{message.name}")
            theirs = real_descriptor(real_pools, ours.full_name)
            for field in ours.fields if theirs is not None else ():
                real = theirs.fields_by_name[field.name]  # type: ignore[attr-defined]
                what = f"{ours.full_name}.{field.name}"
                assert real.number == field.number, what
                # An enumeration that only counts as a number is declared as one.
                assert real.type == field.type or real.cpp_type == real.CPPTYPE_ENUM, what
                assert repr(real.default_value) == repr(field.default_value), what
                compared += 1
    assert compared > 140


def enumerations(pool: Pool) -> dict[str, dict[str, int]]:
    """Return the values of all enumerations of a pool, by the full name of the enumeration."""

    def within(scope: str, enums: Any, messages: Any) -> Iterator[tuple[str, dict[str, int]]]:
        for enum in enums:
            yield f"{scope}.{enum.name}", {item.name: item.number for item in enum.value}
        for message in messages:
            yield from within(f"{scope}.{message.name}", message.enum_type, message.nested_type)

    return dict(
        pair
        for file in pool.files.values()
        for pair in within(file.package, file.enum_type, file.message_type)
    )


def test_enumerations_have_all_the_values_of_apollo(real_pools: list[Pool]) -> None:
    # A number that is not declared would be read as the first that is: a stop for an emergency as
    # one for the vehicle ahead.
    real = {name: values for pool in real_pools for name, values in enumerations(pool).items()}
    compared = 0
    for name, ours in enumerations(own_pool()).items():
        theirs = real.get(name, {})
        assert {k: v for k, v in ours.items() if k not in LATER} == {
            k: v for k, v in theirs.items() if k not in LATER
        } or not theirs, name
        compared += len(theirs)
    assert compared > 60


def test_what_ships_is_what_protoc_makes_of_the_sources(tmp_path: Path) -> None:
    folder = Path(apollo_bridge.__file__).parent
    made = tmp_path / "layouts.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-Iforewarn={folder / 'protos'}"]
    sources = sorted(map(str, (folder / "protos").glob("*.proto")))
    subprocess.run([*command, f"--descriptor_set_out={made}", *sources], check=True)
    parse = FileDescriptorSet.FromString
    assert parse(made.read_bytes()) == parse((folder / made.name).read_bytes()), "`make layouts`"


def test_what_is_written_defines_no_type_of_apollo_but_its_own() -> None:
    # Recorders and monitors register the descriptors of every writer: a second definition of
    # apollo.common.Header, say, would keep them from decoding Apollo's own channels.
    for name in ("apollo.planning.PadMessage", "apollo.external_command.ActionCommand"):
        (file,) = own_pool().needed(name)
        assert [m.name for m in own_pool().files[file].message_type] == [name.split(".")[-1]]
        assert not own_pool().files[file].dependency
