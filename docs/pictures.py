"""Make the pictures of the README from what the commands print:   python docs/pictures.py"""

import html
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.cells import cell_len
from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

IMAGES = Path(__file__).parent / "images"
WIDTH = 100  # cells
CELL = 12.2  # a cell's width in rich's pictures
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"
TEXT = re.compile(r'<text class="(\S+-r\d+)" x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+" ([^>]*)>([^<]*)</text>')
RUN = re.compile(r"[\u2e80-\U0003ffff]+|[^\s\u2e80-\U0003ffff]+")  # without blanks, of wide signs or of narrow ones


def main() -> None:
    """Every picture, written where the README looks for it."""
    IMAGES.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (IMAGES / name).write_text(picture, encoding="utf-8")


def pictures() -> dict[str, str]:
    """File name → picture."""
    title, whole = 'regard explain "我 喜欢 学习 AI 技术"', printed(["explain", "我 喜欢 学习 AI 技术"])
    text = "The cat sat on the mat"
    return {
        "explain.svg": svg(title, whole),
        "weights.svg": svg(title, chapters(whole, "457")),
        "see.svg": svg(f'regard see "{text}"', printed(["see", text])),
    }


def chapters(output: str, numbers: str) -> str:
    """Those chapters of an explanation that have these numbers."""
    parts = re.split(r"\n(?=(?:\x1b\[[\d;]*m)*\d  [A-Z])", output)
    return "\n".join(part for part in parts if re.sub(r"\x1b\[[\d;]*m", "", part)[0] in numbers)


def svg(title: str, output: str) -> str:
    """What a command printed on a terminal with colours, as a picture that needs nothing from the network."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(output.strip("\n")))
    page = re.sub(
        r"@font-face \{\{.*?\}\}\s*|\s*font-variant-east-asian: full-width;", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL
    )
    page = page.replace("Fira Code, monospace", FONTS)
    return TEXT.sub(straightened, console.export_svg(title=title, theme=MONOKAI, code_format=page, unique_id="regard"))


def straightened(text: re.Match[str]) -> str:
    """A line of text as runs, each put where its cell is.

    rich gives a line the length of its characters, which for Chinese is half of its cells, and leaves it to the
    viewer's font where the columns are.
    """
    style, x, y, clip, line = text.groups()
    line = html.unescape(line).replace("\xa0", " ")
    runs = []
    for run in RUN.finditer(line):
        place, length = float(x) + CELL * cell_len(line[: run.start()]), CELL * cell_len(run.group())
        position = f'x="{place:.1f}" y="{y}" textLength="{length:.1f}"'
        runs.append(f'<text class="{style}" {position} {clip}>{html.escape(run.group())}</text>')
    return "\n".join(runs)


def printed(arguments: list[str]) -> str:
    """The output of `regard` with these arguments."""
    terminal = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | terminal
    command = [sys.executable, "-m", "regard", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=True, encoding="utf-8").stdout


if __name__ == "__main__":
    main()
