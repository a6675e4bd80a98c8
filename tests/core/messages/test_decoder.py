"""The decoder is compiled; without it, or with one of other sources, the import says what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from forewarn.messages import _cdr

WITHOUT = "import sys; sys.modules['forewarn.messages._cdr'] = None; import forewarn.messages.plan"
OF_OTHER_SOURCES = (
    "import sys, types; other = types.ModuleType('_cdr'); other.FORMAT = {format}; "
    "other.__file__ = '/old/_cdr.so'; sys.modules['forewarn.messages._cdr'] = other; "
    "import forewarn.messages.plan"
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WITHOUT, "is not built: install forewarn again"),
        (OF_OTHER_SOURCES.format(format=_cdr.FORMAT + 1), "from other sources (/old/_cdr.so)"),
    ],
)
def test_a_decoder_that_is_missing_or_old_is_an_error_that_says_what_to_do(code, said) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode
    assert said in done.stderr
    assert "`make setup`" in done.stderr
