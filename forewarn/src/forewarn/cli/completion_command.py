"""``forewarn completion``: what the shell needs to complete words of a command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from argcomplete.shell_integration import shellcode

from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.errors import InputError
from forewarn.files.outputs import write_output

DESCRIPTION = """\
Install tab completion of commands, options and files for the shell you use: write its script to
where that shell looks for such scripts. It holds from the next shell on."""

EPILOG = """\
exit codes: 0 fine, 2 wrong usage or input.

examples: forewarn completion
          forewarn completion zsh -o /dev/stdout"""

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``completion``."""

    shell: str | None = argument("the shell (default: yours)", choices=SHELLS)
    output: Path | None = option("write the script there instead", "FILE", "-o")


def run(options: Options, output: Output) -> int:
    """Write the script."""
    shell = options.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InputError(f"the shell {shell!r} is not known", accepted=" or ".join(SHELLS))
    path = options.output or _place(shell)
    if options.output is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    # Words are completed by the same program that would run, in whichever environment it is.
    write_output(path, shellcode(["forewarn"], shell=shell))
    output.say(f"completion for {shell} -> {path}")
    if shell == "zsh" and options.output is None:
        output.say(
            f"if ~/.zshrc does not do so yet, add: fpath+=({path.parent}); "
            "autoload -Uz compinit; compinit"
        )
    output.emit({"shell": shell, "file": path})
    return 0


def _place(shell: str) -> Path:
    """Return where a shell looks for the script of a command."""
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return {
        "bash": data / "bash-completion" / "completions" / "forewarn",
        "zsh": data / "zsh" / "site-functions" / "_forewarn",
        "fish": config / "fish" / "completions" / "forewarn.fish",
    }[shell]
