"""Every number in the page is the record's own, to the rounding that its form brings."""

# H heads, Q queries, K keys, D width

from itertools import pairwise

import numpy as np
import pytest

from regard.formula.pooling import even_edges
from regard.view.page.coding import host
from tests.browser import chromium
from tests.browser.asking import ask
from tests.browser.conftest import windows
from tests.browser.records import LONG, alibi, built_in, family, holes, long_text, pair, pieces, written

# Nine tokens are kept as weights, forty-eight as queries and keys.
RECORDS = {
    "built-in": (built_in, {}),
    "pair": (pair, {}),
    "generate": (written, {}),
    "holes": (holes, {}),
    "bert": (family, {"name": "bert"}),
    "bert, padded": (family, {"name": "bert", "padding": "right"}),
    "bert, dots": (family, {"name": "bert", "tokens": LONG}),
    "gpt2": (family, {"name": "gpt2"}),
    "gpt2, dots": (family, {"name": "gpt2", "tokens": LONG}),
    "llama, padded": (family, {"name": "llama", "padding": "left"}),
    "llama, dots, pieces": (pieces, {}),
    "llama, bfloat16": (family, {"name": "llama", "half": True}),
    "llama, bfloat16, dots": (family, {"name": "llama", "tokens": LONG, "half": True}),
    "t5": (family, {"name": "t5"}),
    "t5, dots": (family, {"name": "t5", "tokens": LONG}),
    "marian": (family, {"name": "marian"}),
    "marian, dots": (family, {"name": "marian", "tokens": LONG}),
    "windows, dots": (family, {"name": "mistral", "tokens": LONG}),
    "sinks": (family, {"name": "gpt_oss"}),
    "sinks, dots": (family, {"name": "gpt_oss", "tokens": LONG}),
    "softcap": (family, {"name": "gemma2"}),
    "softcap, dots": (family, {"name": "gemma2", "tokens": LONG}),
    "alibi, dots": (alibi, {}),
}  # fmt: skip


class Opened:
    """A page and the record it was made of."""

    def __init__(self, page, record):
        self.page = page
        self.told = page.evaluate("() => regard.source.description")
        texts = [run.item(item) for run in record.runs for item in range(run.items)]
        self.layers = [layer for text in texts for layer in text.layers]

    def heads(self):
        """Of each layer two heads: where they are in the page, the record's own, its weights, and their rounding."""
        for place, layer in enumerate(self.layers):
            packed = self.told["layers"][place]["packed"]
            for head in (layer.heads[0], layer.heads[-1]):
                own = host(head.weights()).astype(np.float64)
                yield {"layer": place, "head": head.place}, head, own, rounding(own, head, packed)

    def units(self, side, place):
        """The edges of a side's words."""
        tokens = self.told["tokens"][self.told["layers"][place][side]]
        return [*tokens["words"], len(tokens["texts"])]


def rounding(own, head, packed):
    """How far a weight of the page may be from the record's: half of its last bit, or what those of the queries make.

    In float32, sums of D products and an exponential of up to 20 are good to about 1e-5 of the weight.
    """
    if packed["form"] == "weights":
        return own * 2**-11 + 2**-25
    if packed["dtype"] != "i16":  # as the model had them
        return own * 1e-5
    query, key = host(head.map.queries[head.place]), host(head.map.keys[packed["groups"][head.place]])
    steps = [np.abs(side).max(0) / 32767 / 2 for side in (query, key)]
    score = packed["scale"] * (np.abs(query) @ steps[1] + steps[0] @ np.abs(key).max(0)).max()
    return own * (np.expm1(2 * score) + 1e-5)


@pytest.fixture(scope="module", params=RECORDS)
def opened_record(request, browser, file_of):
    make, options = RECORDS[request.param]
    record = make(**options)
    with windows(browser) as opened:
        page = opened(file_of(record).as_uri())
        chromium.until(page, "picture")
        yield Opened(page, record)


def require_close(found, own, most):
    apart = np.abs(np.asarray(found).reshape(own.shape) - own)
    assert np.all(apart <= most), f"{apart.max():.2e} apart, at most {np.max(most):.2e} allowed"


def test_every_weight(opened_record):
    for place, _, own, most in opened_record.heads():
        rows, cols = own.shape
        found = ask(opened_record.page, "rectangle", **place, rows=[0, rows], cols=[0, cols])
        require_close(found, own, most)
        assert np.all(found.reshape(own.shape)[own == 0] == 0)


def test_a_rectangle(opened_record):
    for place, _, own, most in opened_record.heads():
        part = slice(1, 4), slice(2, own.shape[1] - 1)
        found = ask(opened_record.page, "rectangle", **place, rows=[1, 4], cols=[2, own.shape[1] - 1])
        require_close(found, own[part], most[part])


def test_the_mean_of_rows(opened_record):
    for place, _, own, most in opened_record.heads():
        rows = [0, 2, own.shape[0] - 1]
        require_close(ask(opened_record.page, "row", **place, rows=rows), own[rows].mean(0), most[rows].mean(0) + 1e-7)


def test_the_sum_of_columns(opened_record):
    for place, _, own, most in opened_record.heads():
        cols = [0, own.shape[1] - 2]
        found = ask(opened_record.page, "column", **place, cols=cols)
        require_close(found, own[:, cols].sum(1), most[:, cols].sum(1) + 1e-7)


def test_a_tile_is_the_record_pooled(opened_record):
    for place, head, own, most in opened_record.heads():
        rows, cols = own.shape
        question = {"unit": "token", "rows": [1, rows], "cols": [0, cols - 1], "height": 4, "width": 3, "step": 1}
        found = ask(opened_record.page, "tile", **place, **question)
        pooled = host(head.pooled(4, 3, rows=slice(1, rows), cols=slice(0, cols - 1)))
        require_close(found, pooled, most.max() + 1e-7)


def test_a_tile_of_words_is_the_record_grouped(opened_record):
    for place, head, _, most in opened_record.heads():
        rows, cols = (opened_record.units(side, place["layer"]) for side in ("queries", "keys"))
        high, wide = len(rows) - 1, len(cols) - 1
        words = host(head.grouped(rows, cols))
        question = {"unit": "word", "rows": [0, high], "cols": [1, wide], "height": 3, "width": 4, "step": 1}
        down, across = even_edges(range(high), 3), even_edges(range(1, wide), 4)
        means = [[words[a:b, c:d].mean() for c, d in pairwise(across)] for a, b in pairwise(down)]
        longest = np.diff(cols).max()
        require_close(
            ask(opened_record.page, "tile", **place, **question), np.asarray(means), longest * most.max() + 1e-7
        )


def test_the_stated_error_holds(opened_record):
    """What the page says of itself was found in some rows; over all of them it is not much more."""
    told = opened_record.told["precision"]
    worst = 0.0
    for place, _, own, _ in opened_record.heads():
        rows, cols = own.shape
        found = ask(opened_record.page, "rectangle", **place, rows=[0, rows], cols=[0, cols]).reshape(own.shape)
        worst = max(worst, np.abs(found - own).max())
    assert told["checked"] > 0
    assert worst <= 2 * told["error"] + 1e-7


def test_scores_are_the_records_measures(opened_record):
    from regard.record.measures import head_table

    for place, layer in enumerate(opened_record.layers):
        scores = opened_record.page.evaluate("(place) => regard.source.scores(place)", place)
        table = head_table(layer, ("entropy", "distance"))
        for name in ("entropy", "distance"):
            np.testing.assert_allclose(scores[name], np.asarray(table[name], dtype=float), rtol=1e-6)


def test_thumbnails_are_the_record_pooled(opened_record):
    """In 8 bits of a logarithm over five decades: to 2.3 % of a weight."""
    for place, layer in enumerate(opened_record.layers):
        height, width = opened_record.told["layers"][place]["thumbnail"]
        found = np.asarray(
            opened_record.page.evaluate(
                "(place) => regard.source.thumbnails(place).then(({ values }) => Array.from(values))", place
            )
        )
        own = host(layer.pooled(height, width))
        np.testing.assert_allclose(found.reshape(own.shape), own, rtol=0.024, atol=1.2e-5)


def test_an_overview_is_the_record_pooled(page_of):
    page = page_of(long_text())
    height, width = page.evaluate("() => regard.source.description.layers[0].packed.overview")
    some = (
        "() => regard.source.overview(0, 0).then(({ values }) => Array.from(values.filter((_, at) => at % 97 === 0)))"
    )
    own = host(long_text().layers[0].heads[0].pooled(height, width)).reshape(-1)[::97]
    np.testing.assert_allclose(page.evaluate(some), own, rtol=2**-10, atol=2**-24)


def test_a_tile_of_some_queries_says_so(page_of):
    page = page_of(long_text())
    question = {"layer": 0, "head": 0, "unit": "token", "rows": [0, 3000], "cols": [0, 3000], "height": 8, "width": 8}
    tile = page.evaluate("(question) => regard.source.tile(question).then(({ step }) => step)", {**question, "step": 7})
    assert tile == 7
    own = host(long_text().layers[0].heads[0].pooled(8, 8))
    about = ask(page, "tile", **question, step=7).reshape(8, 8)
    assert np.abs(about - own).max() < 0.1 * own.max()


def test_the_precision_is_said_on_the_page(page_of):
    page = page_of(built_in())
    page.get_by_role("button", name="How exact the numbers are").click()
    note = page.locator("#precision-note")
    note.wait_for(state="visible")
    told = page.evaluate("() => regard.source.description.precision")
    digits, tens = f"{told['error']:.1e}".split("e")
    assert f"{digits}e−{abs(int(tens))}, over {told['checked']:,} weights" in note.inner_text()
    assert told["error"] <= 2**-11
