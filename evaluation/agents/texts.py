"""Does it help to ask what texts are about? ToolEmu's runs, models and cases left out together.

    python -m evaluation.agents.texts --data FOLDER [--folder out/agents/texts] [--write]

To the numbers of `toolemu.py` come the task, what the agent says, what a tool answered and the name
of the proposed call. The tree asks of them nothing, what it asks of texts by default, or what they
are about (`--text embedding`), which needs `pip install 'forewarn[embeddings]'`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.agents.outcome import left_out, publish, rows_of, table_of, typed_runs
from evaluation.agents.toolemu import HERE, NAMES, NEEDS, apart_from, by_model_and_case, is_bad
from evaluation.harness.command import command

TEXTS = ("task", "said", "observation", "proposed")
GROUPED = ("--group", "task")
VARIANTS = {
    "numbers": (NAMES, ()),
    "numbers; words and forms of texts": ((*NAMES, *TEXTS), ()),
    "numbers; what texts are about": ((*NAMES, *TEXTS), ("--text", "embedding")),
}
"""Variables and questions; all runs of a task are on one side when the size is chosen."""


def text_of(found: Mapping[str, Any]) -> str:
    """Return the table."""
    return table_of(found["rows"])


def main(
    data: Path, folder: Path = Path("out/agents/texts"), write: bool = False
) -> None:  # fmt: skip
    """Read, judge, write."""
    runs = typed_runs(HERE / "toolemu.yaml", data, (*NAMES, *TEXTS), is_bad, NEEDS)
    groups = by_model_and_case(runs)
    judged = [run for part in groups.values() for run in part]
    scores = {}
    for name, (names, options) in VARIANTS.items():
        asked = [word for variable in names for word in ("--variable", variable)]
        risks = left_out(
            groups, (*NAMES, *TEXTS), folder / name, others=apart_from(groups),
            options=(*GROUPED, *options, *asked),
        )  # fmt: skip
        scores[f"Forewarn: {name}"] = [one.risk for part in risks.values() for one in part]
        print(name, flush=True)
    models = [run.fields["model"] for run in judged]
    found = {"runs": len(runs), "rows": rows_of(scores, [run.bad for run in judged], models)}
    publish("texts", found, text_of(found), folder, write=write)


if __name__ == "__main__":
    command(main)
