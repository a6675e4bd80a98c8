"""The command line: ``forewarn COMMAND``.

Each command is a module with a frozen `Options`, which declares what it takes, and `run`. Only
`main` turns errors into exit codes: 0 fine, 1 findings, 2 usage or input error.
"""

from __future__ import annotations

from forewarn.cli.main import main

__all__ = ["main"]
