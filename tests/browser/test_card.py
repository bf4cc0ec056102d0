"""Tiles that a graphics card computes are those that the processor does."""

import numpy as np
import pytest

from tests.browser import chromium
from tests.browser.asking import ask
from tests.browser.conftest import windows
from tests.browser.records import LONG, alibi, family, holes, long_text, pieces

CARD = (  # a program that acts as one will do
    "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan",
    "--use-vulkan=swiftshader",
)  # fmt: skip
RECORDS = {
    "pieces": (pieces, {}),
    "bfloat16": (family, {"name": "llama", "tokens": LONG, "half": True}),
    "bias": (alibi, {}),
    "t5": (family, {"name": "t5", "tokens": LONG}),
    "sinks": (family, {"name": "gpt_oss", "tokens": LONG}),
    "softcap": (family, {"name": "gemma2", "tokens": LONG}),
    "holes": (holes, {}),
    "long": (long_text, {}),
}


@pytest.fixture(scope="module")
def opened_with_card(browser, file_of):
    """Opens addresses in a second browser, which has a card."""
    flags = [flag for flag in chromium.FLAGS if flag != "--disable-gpu"]
    second = browser.browser_type.launch(executable_path=chromium.executable(), args=[*flags, *CARD])
    with windows(second) as opened:
        page = opened(file_of(alibi()).as_uri())
        if not page.evaluate("async () => Boolean(await navigator.gpu?.requestAdapter())"):
            pytest.skip("no tile was computed on a card: this browser has none for WebGPU")
        yield opened
    second.close()


@pytest.mark.parametrize("name", RECORDS)
def test_a_card_computes_the_same(opened_with_card, file_of, name):
    make, options = RECORDS[name]
    record = make(**options)
    pages = [opened_with_card(f"{file_of(record).as_uri()}#compute={where}") for where in ("gpu", "cpu")]
    for page in pages:
        chromium.until(page, "picture")
    rows, cols = (len(record.layers[-1].queries[0]), len(record.layers[-1].keys[0]))
    rest = {"layer": len(record.layers) - 1, "head": 0, "height": 17, "width": 13}
    for unit, step, last in (("token", 1, (rows, cols)), ("token", 3, (rows, cols)), ("word", 1, (9, 9))):
        question = {**rest, "unit": unit, "step": step, "rows": [2, last[0]], "cols": [1, last[1]]}
        card, plain = (ask(page, "tile", **question) for page in pages)
        np.testing.assert_allclose(card, plain, rtol=1e-4, atol=1e-9)
    used = [
        any(worker.evaluate("() => cardReady?.then(Boolean) ?? false") for worker in page.workers) for page in pages
    ]
    assert used == [name != "holes", False]  # a mask with holes is for the processor
