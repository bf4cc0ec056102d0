"""Records of random numbers, and a page of as few scripts as can be, to read blocks back out of."""

import json
import re

import numpy as np

from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map
from regard.view.page.coding import read_weights
from regard.view.page.describe import chosen, describe
from regard.view.page.document import document, read_block
from regard.view.page.packing import pack

APP = {
    "page.html": '<!doctype html><meta http-equiv="Content-Security-Policy" content="{{policy}}">'
    "<title>{{title}}</title><style>{{style}}</style>"
    '<script type="application/json" id="description">{{description}}</script>'
    '<script type="text/plain" id="worker">{{worker}}</script>'
    '{{first}}<script type="module" async>{{script}}</script>\n{{data}}',
    "style.css": "body { margin: 0 }\n",
    "main.js": '/** All. */\nimport { one } from "./one.js";\n\nexport const two = one + 1;\n',
    "one.js": "/** One. */\nexport const one = 1;\n",
    "worker.js": '/** Works. */\nimport { one } from "./one.js";\n\nconst three = one + 2;\n',
}


def app_folder(folder, **changes):
    """A folder of scripts; main_js="…" puts another text in the place of main.js."""
    for name, text in (APP | {name.replace("_", ".", 1): text for name, text in changes.items()}).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def map_of(*, heads=2, groups=None, queries=40, keys=40, width=4, convert=lambda array: array, **options):
    """A map of random queries and keys."""
    options = {"scale": 0.5, "offset": keys - queries} | options
    rows, cols = numbers(heads, queries, width, seed=1), numbers(groups or heads, keys, width, seed=2)
    return Map(queries=convert(2 * rows), keys=convert(cols), **options)


def layer_of(*maps, index=0, kind="encoder", queries=None, keys=None):
    heads, rows, cols = maps[0].shape
    return Layer(
        name=f"layers.{index}", kind=kind, index=index, maps=maps, head_numbers=tuple(range(heads)),
        queries=tuple(queries or [Tokens.of([f"w{place % 7}" for place in range(rows)])] * len(maps)),
        keys=tuple(keys or [Tokens.of([f"w{place % 7}" for place in range(cols)])] * len(maps)),
    )  # fmt: skip


def record_of(*layers, model="random"):
    return Record([Run(layers=layers, model=model)])


def page_of(record, folder, **options):
    """A page, its bytes."""
    shown = chosen(record, **options)
    packed = pack(shown)
    told = describe(shown, source="packed", precision=packed.precision, details=packed.details)
    return b"".join(document(told, packed.blocks, app=app_folder(folder)))


def description_of(page):
    return json.loads(re.search(rb'id="description">(.*?)</script>', page, re.S)[1])


def weights_in(page, layer=0, head=0):
    """All weights of a head, out of the bytes of a page."""
    told = description_of(page)
    described = told["layers"][layer]
    shape = tuple(len(told["tokens"][described[side]]["texts"]) for side in ("queries", "keys"))
    return read_weights(described, head, range(shape[0]), shape, lambda name: read_block(page, name))
