"""Makes the pictures of the README from what the demo really printed and wrote.

    python scripts/pictures.py

runs the demo, draws its lines as an animated SVG, and takes a picture of its
report with Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from itertools import accumulate, pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
REPORT = ROOT / "out" / "demo" / "report.html"
ROWS, COLUMNS, LINE, WIDTH = 17, 112, 18, 7.4  # lines and characters that are shown, in pixels
PAUSE = 4.0  # seconds before it begins again
LONGEST = 0.4  # seconds between two lines: waiting is cut short
SHADES = {1: "#f2777a", 2: "#7ec699", 3: "#f0c674", 5: "#cc99cc"}  # by the colours' numbers
STYLE = """\
text {{ font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre }}
.l {{ opacity: 0; animation: {all}s infinite steps(1) }}
.s {{ animation: scroll {all}s infinite steps(1) }}
"""


def main() -> int:
    """Write docs/images/demo.svg and docs/images/report.png."""
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "demo.svg").write_text(animation(run()), encoding="utf-8")
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("pictures: error: there is no chromium on the PATH", file=sys.stderr)
        return 1
    picture = IMAGES / "report.png"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--window-size=1200,900", "--virtual-time-budget=5000",
               f"--screenshot={picture}", REPORT.as_uri()]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return 0


def run() -> list[tuple[float, str]]:
    """Run the demo and return its lines, each with the seconds after which it came."""
    command = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    settings = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"}
    begun = time.monotonic()
    environment = {**os.environ, **settings}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as demo:
        assert demo.stdout is not None
        lines = [
            (time.monotonic() - begun, line.rstrip("\n").replace(f"{ROOT}/", ""))
            for line in demo.stdout
            if not line.startswith("done in")  # that depends on the machine
        ]
    if demo.returncode:
        raise SystemExit(demo.returncode)
    return lines


def animation(lines: list[tuple[float, str]]) -> str:
    """Return lines as an SVG in which each appears when it came, and the oldest scroll away."""
    moments = shortened([moment for moment, _ in lines])
    whole = moments[-1] + PAUSE
    shown, frames, scrolled = [], [], ["0% { transform: translateY(0) }"]
    for row, (moment, (_, line)) in enumerate(zip(moments, lines, strict=True)):
        share = 100 * moment / whole
        frames.append(f"@keyframes a{row} {{ 0% {{ opacity: 0 }} {share:.2f}% {{ opacity: 1 }} }}")
        spans = "".join(_spans(Text.from_ansi(line)[:COLUMNS]))
        named = f'class="l" style="animation-name:a{row}" y="{(row + 1) * LINE}"'
        shown.append(f"<text {named}>{spans}</text>")
        if row >= ROWS:
            up = (row - ROWS + 1) * LINE
            scrolled.append(f"{share:.2f}% {{ transform: translateY(-{up}px) }}")
    width, height = round(COLUMNS * WIDTH), ROWS * LINE + 12
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        "<title>make demo, its waiting cut short</title>",
        f"<style>{STYLE.format(all=f'{whole:.1f}')}",
        *frames,
        f"@keyframes scroll {{ {' '.join(scrolled)} }}</style>",
        f'<rect width="{width}" height="{height}" rx="6" fill="#1d2430"/>',
        f'<svg x="10" width="{width - 20}" height="{height - 4}"><g class="s">',
        *shown,
        "</g></svg></svg>",
        "",
    ])  # fmt: skip


def shortened(moments: list[float]) -> list[float]:
    """Return moments with long pauses cut."""
    gaps = [0.0, *(later - sooner for sooner, later in pairwise(moments))]
    return list(accumulate(min(gap, LONGEST) for gap in gaps))


def _spans(text: Text) -> list[str]:
    """Return a line with its colours."""
    spans = []
    for part in text.divide(sorted({edge for span in text.spans for edge in span[:2]})):
        style = part.get_style_at_offset(Console(), 0) if part.plain else None
        colour = SHADES.get(style.color.number or 0) if style is not None and style.color else None
        faint = ' opacity=".35"' if style is not None and style.dim else ""
        bold = ' font-weight="bold"' if style is not None and style.bold else ""
        fill = f' fill="{colour}"' if colour else ""
        look = fill + faint + bold
        spans.append(f"<tspan{look}>{escape(part.plain)}</tspan>" if look else escape(part.plain))
    return spans


if __name__ == "__main__":
    sys.exit(main())
