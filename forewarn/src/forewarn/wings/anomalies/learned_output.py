"""What ``forewarn learn`` says of normal runs."""

from __future__ import annotations

from forewarn.cli.output import Output
from forewarn.wings.anomalies.normal_moments import NormalMoments


def print_normal(found: NormalMoments, *, asked: bool, output: Output) -> None:
    """Print what is kept of normal runs, what is promised, and how it is used.

    `asked` tells that the monitor file has the section already.
    """
    output.say(found.in_words)
    if found.left_out:
        told = ", ".join(f"{name} {reason}" for name, reason in found.left_out.items())
        output.note(f"note: not compared: {told}")
    if found.unlimited:
        output.warn(
            "a normal run has an infinite value, or one as far from all others: no run can be "
            "anomalous at this share. Give that signal a finite value there, or leave it out"
        )
    if not asked:
        output.say(
            "`anomaly: {}` in the monitor file lets `replay` and the node tell runs that are "
            "unlike these"
        )
