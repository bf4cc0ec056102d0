"""BertViz's pages, with the scripts that they ask of a CDN lying on the disk."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

CDN = "https://cdnjs.cloudflare.com/ajax/libs/"
SCRIPTS = {  # what a page asks for: what npm has of it. jQuery 2.0.0 is not there; 2.1.0 is its next.
    "require.js/2.3.6/require.min.js": ("requirejs@2.3.6", "requirejs/require.js"),
    "d3/5.7.0/d3.min": ("d3@5.7.0", "d3/dist/d3.min.js"),
    "jquery/2.0.0/jquery.min": ("jquery@2.1.0", "jquery/dist/jquery.min.js"),
}
VIEWS = ("head_view", "model_view")


def missing() -> str:
    """Why BertViz cannot be measured here; empty when it can."""
    if find_spec("bertviz") is None or find_spec("IPython") is None:
        return "BertViz is not installed: pip install ipython; pip install --no-deps bertviz==1.4.1"
    return "" if shutil.which("npm") else "npm is missing; it brings the scripts that BertViz asks of a CDN"


def scripts(folder: Path) -> None:
    """Bring the three scripts into a folder."""
    packages = [package for package, _ in SCRIPTS.values()]
    command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    subprocess.run([*command, "--prefix", str(folder), *packages], check=True, stdout=subprocess.DEVNULL)


def page(view: str, model, ids, tokens: list[str], path: Path) -> None:
    """A page as BertViz's users make it: the forward that returns all weights, and the page they are written into."""
    import bertviz
    import torch

    with torch.no_grad():
        weights = model(ids, output_attentions=True).attentions
    path.write_text(getattr(bertviz, view)(weights, tokens, html_action="return").data, encoding="utf-8")


def take_offline(path: Path, folder: Path) -> None:
    """Let a page take its scripts from the folder, which is faster than any CDN."""
    text = path.read_bytes()
    for asked, (_, found) in SCRIPTS.items():
        address = (folder / "node_modules" / found).as_uri()
        if not asked.endswith(".js"):
            address = address.removesuffix(".js")  # require.js adds it
        text = text.replace((CDN + asked).encode(), address.encode(), 1)
    path.write_bytes(text)
