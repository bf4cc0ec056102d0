"""What a page says of a record."""

import numpy as np
import pytest

from regard.errors import OptionError, RegardError
from regard.record import Record, Run, Tokens
from regard.view.page.describe import chosen, describe

from .pages import layer_of, map_of, record_of

PIECES = Tokens(("un", "believ", "able", " cats"), (True, False, False, True), segments=(0, 0, 0, 1), generated=3)


def small(**options):
    return map_of(queries=4, keys=4, **options)


def test_a_served_record():
    record = record_of(layer_of(small(), queries=[PIECES], keys=[PIECES]), model="tiny")
    told = describe(chosen(record), runs_text=True)
    assert told["tokens"] == [
        {
            "texts": ["un", "believ", "able", " cats"], "words": [0, 3], "word_texts": ["unbelievable", "cats"],
            "segments": [0, 0, 0, 1], "generated": 3,
        }
    ]  # fmt: skip
    assert told["layers"] == [
        {
            "id": 0, "name": "layers.0", "index": 0, "kind": "encoder", "queries": 0, "keys": 0, "offset": 0,
            "heads": [0, 1], "scores": None, "thumbnail": None, "packed": None,
        }
    ]  # fmt: skip
    assert told["texts"] == [{"name": "unbelievable cats", "layers": [0]}]
    assert (told["title"], told["model"], told["source"], told["runs_text"]) == ("tiny", "tiny", "served", True)
    assert told["precision"] is None


def test_every_run_and_every_text_of_a_batch():
    first, second = Tokens.of(list("abcd")), Tokens.of(list("efgh"))
    batch = layer_of(small(), small(), queries=[first, second], keys=[first, second])
    deeper = layer_of(small(), small(), index=1, queries=[first, second], keys=[first, second])
    record = Record([Run(layers=(batch, deeper), model="m"), Run(layers=(batch,), model="m")])
    told = describe(chosen(record))
    assert [text["layers"] for text in told["texts"]] == [[0, 1], [2, 3], [4], [5]]
    assert [text["name"] for text in told["texts"]] == ["a b c d", "e f g h"] * 2
    assert [layer["id"] for layer in told["layers"]] == list(range(6))
    assert [layer["index"] for layer in told["layers"]] == [0, 1, 0, 1, 0, 0]
    assert len(told["tokens"]) == 2  # each once


def test_a_choice_of_layers_and_heads():
    record = record_of(*(layer_of(small(heads=4), index=index) for index in range(3)))
    told = describe(chosen(record, layers=[2, 1], heads=3))
    assert [(layer["id"], layer["index"], layer["heads"]) for layer in told["layers"]] == [(0, 1, [3]), (1, 2, [3])]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 7}, r"no layer 7 here; there are 0\."),
        ({"heads": [0, 9]}, r"no head 9 here; there are 0, 1\."),
        ({"heads": []}, r"no heads are chosen"),
    ],
)
def test_a_choice_of_what_is_not_there(options, message):
    with pytest.raises(OptionError, match=message):
        chosen(record_of(layer_of(small())), **options)


def test_an_empty_record():
    with pytest.raises(RegardError, match="nothing to show"):
        chosen(Record([]))


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["0", "1", "2", "3"], "text 1"),
        (["", " ", "", ""], "text 1"),
        (["word"] * 40, "word " * 11 + "word…"),
        (["x" * 10_000] + [""] * 3, "x" * 59 + "…"),
        (["line\n", "two\t", "", "end"], "line two end"),
    ],
)
def test_the_name_of_a_text(texts, name):
    side = [Tokens.of(texts)]
    found = map_of(queries=len(texts), keys=len(texts))
    assert chosen(record_of(layer_of(found, queries=side, keys=side))).texts[0].name == name


def test_tokens_that_do_not_fit_the_map_are_numbered():
    layer = layer_of(small(), queries=[Tokens.of(["a"])], keys=[Tokens.of(["a"])])
    told = describe(chosen(record_of(layer)))
    assert told["tokens"][0]["texts"] == ["0", "1", "2", "3"]


def test_numbers_of_numpy_are_plain():
    import json

    found = map_of(queries=4, keys=4, offset=np.int64(0), scale=np.float32(0.5))
    side = [Tokens(("a",) * 4, (True,) * 4, segments=tuple(np.zeros(4, dtype=np.int64)), generated=np.int64(2))]
    json.dumps(describe(chosen(record_of(layer_of(found, queries=side, keys=side)))))
