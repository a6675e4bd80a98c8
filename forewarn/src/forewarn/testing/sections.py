"""What every section of the monitor file that is not the core's keeps to; a test inherits it."""

from __future__ import annotations

from typing import ClassVar

import pytest

from forewarn.config.file import MonitorSpec, parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ConfigErrors


class SectionContract:
    """Laws of a `Section` that a monitor file names by a key.

    Attributes
    ----------
    key : str
        The key.
    file : str
        A monitor file that has the section.
    wrong : dict of str to (str, str)
        What to replace in the file by what, and the key path that the error names.
    """

    key: str
    file: str
    wrong: ClassVar[dict[str, tuple[str, str]]] = {}

    def parsed(self, text: str) -> MonitorSpec:
        return parse_spec(parse_document(text))

    def problems(self, text: str) -> str:
        with pytest.raises((ConfigError, ConfigErrors)) as caught:
            self.parsed(text)
        return str(caught.value)

    def test_it_is_one_of_the_sections_that_the_file_has(self) -> None:
        before = len(self.parsed(self.file).wing_sections)
        data = parse_document(self.file).data
        assert self.key in data
        without = {key: value for key, value in data.items() if key != self.key}
        assert before == 1 + len(MonitorSpec.model_validate(without).wing_sections)

    def test_a_value_that_is_no_mapping_is_refused(self) -> None:
        data = parse_document(self.file).data
        text = "\n".join(f"{key}: {value!r}" for key, value in (data | {self.key: 7}).items())
        assert self.key in self.problems(text.replace("True", "true").replace("None", "null"))

    def test_what_is_wrong_is_named(self) -> None:
        for before, (after, place) in self.wrong.items():
            assert before in self.file
            assert place in self.problems(self.file.replace(before, after))

    def test_it_fits_and_its_durations_are_its_own(self) -> None:
        spec = self.parsed(self.file)
        for section in spec.wing_sections:
            assert list(section.misfits(spec)) == []
            assert all(isinstance(value, float | int) for _, value in section.durations(spec))
