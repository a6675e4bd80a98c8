"""Entry point of the executable ``apollo_bridge``."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn_ros.process import Interrupt, middleware


def main(args: Sequence[str] | None = None) -> None:
    """Run the bridge until a signal ends it."""
    with Interrupt() as interrupt:
        # Not before the handlers stand: imports take most of the time of a start.
        from apollo_bridge.node import BridgeNode
        from forewarn_ros.lifecycle import serve

        if interrupt.signalled:
            return
        with middleware(args):
            with interrupt.making():
                node = BridgeNode()
            serve(node, interrupt)
