"""The record's file: what goes in comes out bit for bit, and what is no record is refused in words."""

import gc
import json
import math
import os
import resource
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from regard.errors import DtypeError, FileError, OptionError, RegardError, ShapeError
from regard.formula import masks, positions
from regard.formula.masks import Mask
from regard.formula.masks.places import Placed
from regard.formula.positions import Bias
from regard.record import file
from regard.record.file import contents, forms, save, writing
from regard.record.map import Map
from regard.record.record import Layer, Record, Run
from regard.record.tokens import Tokens

H, G, Q, K, D = 4, 2, 5, 11, 8


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def a_map(**options):
    return Map(**{"queries": numbers(H, Q, D), "keys": numbers(G, K, D), "scale": 0.3, **options})


def a_layer(*maps, **options):
    queries = tuple(Tokens.of([f"q{i}" for i in range(one.shape[1])]) for one in maps)
    keys = tuple(Tokens.of([f"k{i}" for i in range(one.shape[2])]) for one in maps)
    heads = tuple(range(maps[0].shape[0]))
    return Layer(
        **{"name": "a.layer", "kind": "cross", "index": 3, "maps": maps, "queries": queries, "keys": keys,
           "head_numbers": heads, **options}
    )  # fmt: skip


def a_record(*layers, model="bert"):
    return Record([Run(layers=layers or (a_layer(a_map()),), model=model)])


def through(record, path, **options):
    record.save(path, **options)
    return file.open(path)


def headers(path):
    """The header, the description inside it, and the rest of the bytes."""
    whole = Path(path).read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["record"]), whole[8 + length :]


def write(path, header, record, data):
    if record is not None:
        header["__metadata__"]["record"] = record if isinstance(record, str) else json.dumps(record)
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def ask_everything(record):
    """Every question there is; a wrong file may give wrong numbers, and no errors but ours."""
    repr(record), repr(record.layers), record.tokens, record.items, record.model
    for layer in record.layers:
        for sight in (layer, layer.heads[0], layer.heads[-1]):
            for question in ("weights", "entropy", "distance", "received", "pooled", "top", "log_sum_exp"):
                with suppress(RegardError):
                    getattr(sight, question)()
        assert [side.words for side in layer.queries + layer.keys]


# ---- what goes in comes out


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("library", ["numpy", "cpu", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize("turned", [False, True])
def test_queries_and_keys_come_back_bit_for_bit(library, dtype, turned, tmp_path):
    queries, keys = numbers(H, D, Q), numbers(G, D, K)
    queries[0, 0, :3] = np.nan, np.inf, -0.0
    if library == "numpy":
        queries, keys = (part.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for part in (queries, keys))
    else:
        queries, keys = (torch.from_numpy(part).to(library, getattr(torch, dtype)) for part in (queries, keys))
    queries, keys = queries.swapaxes(1, 2), keys.swapaxes(1, 2)  # not contiguous
    if not turned:
        queries, keys = (part.copy() if library == "numpy" else part.contiguous() for part in (queries, keys))
    found = through(a_record(a_layer(a_map(queries=queries, keys=keys))), tmp_path / "a").layers[0].map
    for before, after in ((queries, found.queries), (keys, found.keys)):
        bits = f"int{after.itemsize * 8}"
        whole = before.copy().view(bits) if library == "numpy" else before.contiguous().view(getattr(torch, bits)).cpu()
        assert after.dtype.name == dtype
        np.testing.assert_array_equal(after.view(bits), np.asarray(whole))


def test_big_endian_numbers_and_numbers_with_gradients(tmp_path):
    queries = numbers(H, Q, D).astype(">f4")
    keys = torch.from_numpy(numbers(G, K, D)).requires_grad_()
    found = through(a_record(a_layer(a_map(queries=queries, keys=keys))), tmp_path / "a", lse=False).layers[0].map
    np.testing.assert_array_equal(found.queries, numbers(H, Q, D))
    np.testing.assert_array_equal(found.keys, numbers(G, K, D))


def test_everything_else_comes_back(tmp_path):
    one = a_map(
        softcap=30.0, sinks=numbers(H), offset=6, values=numbers(G, K, 3), value_norms=numbers(H, K),
        gradients=numbers(H, Q, 3), scale=1 / 3,
    )  # fmt: skip
    other = a_map(queries=numbers(H, 2, D), keys=numbers(G, 3, D))
    side = Tokens(("I", "' m", '\ud800 我\n"', "", "x"), (True, False, True, True, False), (0, 0, 1, 1, 1), 3)
    sides = side, Tokens.numbered(2)
    layer = a_layer(one, other, head_numbers=(0, 2, 5, np.int64(7)), index=-1, name="h.\0.attn", queries=sides)
    found = through(a_record(layer, model="日本"), tmp_path / "a")
    assert (found.model, found.items, len(found.layers)) == ("日本", 2, 1)
    (again,) = found.layers
    for name in ("name", "kind", "index", "queries", "keys", "head_numbers"):
        assert getattr(again, name) == getattr(layer, name)
    for before, after in zip(layer.maps, again.maps, strict=True):
        assert (after.scale, after.softcap, after.offset) == (before.scale, before.softcap, before.offset)
        for name in ("sinks", "values", "value_norms", "gradients"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    np.testing.assert_allclose(found.item(1).layers[0].weights(), layer.weights(item=1), rtol=1e-6)


MASKS = {
    "causal": masks.causal(),
    "causal from 3": masks.causal(3),
    "causal, head by head": masks.causal(np.array([3, 4, 5, 6])),
    "window": masks.window(3, 1),
    "window, one side": masks.window(None, 2, offset=np.array([1])),
    "blocks": masks.blocks(3),
    "ranges": masks.ranges(np.array([0, 1, 2, 3, 4]), np.array([5, 6, 7, 8, 10])),
    "global": masks.global_tokens([0, 7]),
    "padding": masks.padding(7),
    "padding, listed": masks.padding([7]),
    "padding, array": masks.padding(np.array([5, 6, 7, 8])),
    "padding, no axis": masks.padding(np.array(6)),
    "keys": masks.keys(numbers(K) > 0),
    "segments": masks.segments(np.array([0, 0, 1, 1, 2]), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2])),
    "given": masks.given(numbers(Q, K) > 0),
    "given, head by head": masks.given(numbers(H, Q, K) > 0),
    "given, one row": masks.given(numbers(1, K) > 0),
    "given, one column": masks.given(numbers(H, Q, 1) > 0),
    "given, for all": masks.given(np.array(True)),
    "both": masks.causal() & masks.keys(numbers(K) > -1) & (numbers(Q, K) > -1),
    "either": masks.window(1, 1) | masks.global_tokens([0]) | masks.blocks(2),
    "not": ~(masks.causal() | ~masks.padding(4)),
}
BIASES = {
    "alibi": positions.alibi(H),
    "alibi from 2": positions.alibi(H, offset=2),
    "t5": positions.t5(numbers(32, H), both_ways=True, farthest=64),
    "distances": positions.by_distance(numbers(H, 40), -20),
    "given": positions.bias.as_bias(numbers(H, Q, K)),
    "given, bfloat16": positions.bias.as_bias(numbers(1, K).astype(ml_dtypes.bfloat16)),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_come_back(name, tmp_path):
    record = a_record(a_layer(a_map(mask=MASKS[name])))
    once = through(record, tmp_path / "a", lse=False)
    twice = through(once, tmp_path / "b", lse=False)
    for found in (once, twice):
        np.testing.assert_array_equal(found.layers[0].map.mask.dense(H, Q, K), MASKS[name].dense(H, Q, K))
        np.testing.assert_array_equal(found.layers[0].weights(), record.layers[0].weights())
        for place, head in enumerate(found.layers[0].heads):
            whole = head.weights()
            np.testing.assert_allclose(whole, record.layers[0].heads[place].weights(), rtol=1e-6)
            np.testing.assert_allclose(head.weights(slice(1, 4), slice(2, 9)), whole[1:4, 2:9], rtol=1e-6)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", BIASES)
def test_biases_come_back(name, tmp_path):
    record = a_record(a_layer(a_map(bias=BIASES[name])))
    found = through(record, tmp_path / "a")
    np.testing.assert_array_equal(found.layers[0].weights(), record.layers[0].weights())
    np.testing.assert_allclose(found.layers[0].heads[2].weights(), record.layers[0].heads[2].weights(), rtol=1e-6)


def test_masks_and_biases_of_torch(tmp_path):
    keep, table = torch.tensor(numbers(K) > 0), torch.tensor(numbers(32, H)).bfloat16()
    allowed = torch.tensor(numbers(Q, K).T.copy() > -1).T
    one = a_map(
        queries=torch.tensor(numbers(H, Q, D)), keys=torch.tensor(numbers(G, K, D)),
        mask=masks.keys(keep) & masks.given(allowed), bias=positions.t5(table, both_ways=False),
    )  # fmt: skip
    record = a_record(a_layer(one))
    found = through(record, tmp_path / "a")
    np.testing.assert_allclose(found.layers[0].weights(), record.layers[0].weights().numpy(), rtol=1e-5)


# ---- docs/record-file.md, followed word for word, with one number at a time


class Reader:
    """A reader as somebody would write one who has the page and no Regard."""

    def __init__(self, path):
        self.header, self.described, self.data = headers(path)
        self.item = self.described["layers"][0]["items"][0]
        self.queries, self.keys = (self.tensor(self.item[name]) for name in ("queries", "keys"))
        (self.H, self.Q, _), (self.G, self.K, _) = self.queries.shape, self.keys.shape

    def tensor(self, name):
        entry = self.header[name]
        dtypes = {"BOOL": "?", "U8": "u1", "I64": "<i8", "F32": "<f4", "BF16": ml_dtypes.bfloat16}
        begin, end = entry["data_offsets"]
        return np.frombuffer(self.data[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])

    def of(self, value, h):
        """A field for one head: axes of 1 serve all heads."""
        if isinstance(value, dict):
            value = self.tensor(value["tensor"])
        return np.broadcast_to(value, (self.H, *np.shape(value)[1:]))[h] if np.ndim(value) else value

    def place(self, i, offset, h):
        return i + (self.K - self.Q if offset is None else int(self.of(offset, h)))

    def sees(self, number, h, i, j):
        mask = self.described["masks"][number]
        row = lambda name: np.broadcast_to(x := self.tensor(mask[name]["tensor"]), (self.H, x.shape[-1]))[h]  # noqa: E731
        p = self.place(i, mask.get("offset"), h)
        match mask["kind"]:
            case "causal":
                return j <= p
            case "window":
                left, right = (math.inf if mask[side] is None else mask[side] for side in ("left", "right"))
                return p - left <= j <= p + right
            case "blocks":
                return p // mask["size"] == j // mask["size"]
            case "ranges":
                return row("first")[i] <= j <= row("last")[i]
            case "global":
                return p in mask["places"] or j in mask["places"]
            case "padding":
                return j < self.of(mask["lengths"], h)
            case "keys":
                return row("keep")[j]
            case "segments":
                return row("query_ids")[i] == row("key_ids")[j]
            case "given":
                return np.broadcast_to(self.tensor(mask["allowed"]["tensor"]), (self.H, self.Q, self.K))[h, i, j]
            case "packed":
                bits = self.tensor(mask["bits"]["tensor"])
                return np.broadcast_to(bits, (self.H, *bits.shape[-2:]))[h, i, j // 8] >> (7 - j % 8) & 1
            case "both":
                return all(self.sees(mask[part]["mask"], h, i, j) for part in ("one", "other"))
            case "either":
                return any(self.sees(mask[part]["mask"], h, i, j) for part in ("one", "other"))
            case "not":
                return not self.sees(mask["one"]["mask"], h, i, j)

    def added(self, number, h, i, j):
        bias = self.described["biases"][number]
        d = j - self.place(i, bias.get("offset"), h)
        match bias["kind"]:
            case "alibi":
                return -bias["slopes"][h] * abs(d)
            case "t5":
                table = self.tensor(bias["table"]["tensor"])
                return table[self.bucket(d, len(table), bias["both_ways"], bias["farthest"]), h]
            case "distances":
                numbers = self.tensor(bias["numbers"]["tensor"])
                return np.broadcast_to(numbers, (self.H, numbers.shape[-1]))[h, d - bias["first"]]
            case "given":
                return np.broadcast_to(self.tensor(bias["numbers"]["tensor"]), (self.H, self.Q, self.K))[h, i, j]

    def bucket(self, d, buckets, both_ways, farthest):
        rows = buckets // 2 if both_ways else buckets
        exact, far = rows // 2, abs(d) if both_ways else max(-d, 0)
        later = rows if both_ways and d > 0 else 0
        if far < exact:
            return far + later
        return later + min(rows - 1, exact + int(math.log(far / exact) / math.log(farthest / exact) * (rows - exact)))

    def weights(self):
        scores = np.full((self.H, self.Q, self.K), -np.inf)
        for h, i, j in np.ndindex(scores.shape):
            if self.item["mask"] is not None and not self.sees(self.item["mask"], h, i, j):
                continue
            s = self.item["scale"] * (
                self.queries[h, i].astype(float) @ self.keys[h * self.G // self.H, j].astype(float)
            )
            if self.item["softcap"] is not None:
                s = self.item["softcap"] * math.tanh(s / self.item["softcap"])
            scores[h, i, j] = s + (0 if self.item["bias"] is None else self.added(self.item["bias"], h, i, j))
        powers = np.exp(scores)
        sums = powers.sum(-1)
        if self.item["sinks"] is not None:
            sums = sums + np.exp(self.tensor(self.item["sinks"]))[:, None]
        return powers / np.where(sums == 0, 1, sums)[..., None], sums


CASES = {
    **{f"mask {name}": {"mask": mask} for name, mask in MASKS.items()},
    **{f"bias {name}": {"bias": bias} for name, bias in BIASES.items()},
    "t5, far": {"bias": positions.t5(numbers(8, H), both_ways=False, farthest=9, offset=6)},
    "softcap and sinks": {"softcap": 0.7, "sinks": numbers(H), "mask": MASKS["not"], "bias": BIASES["alibi"]},
}


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_how_a_weight_follows(name, tmp_path):
    record = a_record(a_layer(a_map(**CASES[name])))
    record.save(tmp_path / "a")
    reader = Reader(tmp_path / "a")
    weights, sums = reader.weights()
    np.testing.assert_allclose(record.layers[0].weights(), weights, rtol=1e-4, atol=1e-7)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(reader.tensor(reader.item["lse"]), np.log(sums), rtol=1e-4, atol=1e-5)


# ---- kinds


def classes(parent):
    for child in parent.__subclasses__():
        yield from classes(child)
        ours = child.__module__.startswith(("regard.formula", "regard.record.file"))
        if ours and child is not Placed and child.__module__ != "regard.formula.sampled":  # asked of, never kept
            yield child


@pytest.mark.parametrize(("parent", "forms"), [(Mask, forms.MASKS), (Bias, forms.BIASES)])
def test_every_kind_has_a_form_with_all_its_fields(parent, forms):
    assert {form.made for form in forms.values()} == set(classes(parent))
    for form in forms.values():
        assert set(form.fields) == {field.name for field in fields(form.made)}


def test_a_square_mask_takes_a_bit_each_and_unpacks_what_is_asked_for(tmp_path):
    allowed = numbers(64, 100) > 0
    one = a_map(queries=numbers(1, 64, D), keys=numbers(1, 100, D), mask=masks.given(allowed))
    mask = through(a_record(a_layer(one)), tmp_path / "a").layers[0].map.mask
    assert mask.bits.nbytes == 64 * 13
    for cols in (slice(0, 0), slice(3, 5), slice(8, 16), slice(7, 100), slice(99, 100), slice(None)):
        tile = mask.tile(slice(5, 9), cols, (1, 64, 100))
        assert tile.dtype == bool
        np.testing.assert_array_equal(tile, allowed[5:9, cols])
    with pytest.raises(ShapeError, match="64 × 100 and the map 64 × 99"):
        mask.tile(slice(0, 1), slice(0, 1), (1, 64, 99))


# ---- the file


def test_the_safetensors_library_reads_it(tmp_path):
    one = a_map(queries=torch.tensor(numbers(H, Q, D)).bfloat16(), keys=torch.tensor(numbers(G, K, D)).bfloat16())
    a_record(a_layer(one, a_map(mask=MASKS["both"], bias=BIASES["t5"]))).save(tmp_path / "a")
    with safetensors.safe_open(tmp_path / "a", "pt") as found:
        assert found.metadata().keys() == {"format", "version", "record"}
        assert torch.equal(found.get_tensor("layers.0.items.0.queries"), one.queries)
        assert torch.equal(found.get_tensor("biases.0.table"), torch.tensor(numbers(32, H)))
        assert len(found.keys()) == 9  # queries, keys and sums of two maps, two masks, a table


def test_what_is_shared_is_written_once(tmp_path):
    allowed, keys = numbers(Q, K) > 0, numbers(G, K, D)
    maps = [a_map(queries=numbers(H, Q, D, seed=seed), keys=keys[:], mask=masks.given(allowed[:])) for seed in range(6)]
    record = a_record(*(a_layer(one) for one in maps))
    found = through(record, tmp_path / "a", lse=False)
    _, described, data = headers(tmp_path / "a")
    assert len(data) == keys.nbytes + Q * 2 + 6 * H * Q * D * 4
    assert [len(described[table]) for table in ("masks", "biases", "tokens")] == [1, 0, 2]
    assert len({id(layer.map.mask) for layer in found.layers}) == 1
    assert len({id(layer.queries[0]) for layer in found.layers}) == 1
    np.testing.assert_array_equal(found.layers[5].map.queries, maps[5].queries)


def test_numbers_begin_at_multiples_of_their_size(tmp_path):
    one = a_map(queries=numbers(1, 1, 3).astype(np.float16), keys=numbers(1, 4, 3).astype(np.float16),
                mask=masks.keys(np.array([True, False, True, True])), lse=numbers(1, 1).astype(np.float64))  # fmt: skip
    found = through(a_record(a_layer(one)), tmp_path / "a").layers[0].map
    assert all(array.flags.aligned for array in (found.queries, found.keys, found.lse, found.mask.keep))
    assert int.from_bytes((tmp_path / "a").read_bytes()[:8], "little") % 8 == 0


@pytest.mark.parametrize("shape", [(H, 4096, 64), (1, 2**15, 8), (2**18,), (2, 1, 1, 2**17)])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_large_arrays_are_written_in_pieces(shape, library, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "PIECE", 2**14)
    array = numbers(*shape[::-1]).transpose()
    array = torch.from_numpy(array) if library == "torch" else array
    pieces = [np.array(writing._bytes(piece, False)) for piece in writing._pieces(array)]
    assert max(piece.nbytes for piece in pieces) <= 2**14
    assert b"".join(map(bytes, pieces)) == np.asarray(array).tobytes()


def test_saving_holds_no_copy_of_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "PIECE", 2**20)
    rows = [np.zeros((8, 2**14, 64), np.float16).swapaxes(1, 2) for _ in range(4)]  # 16 MiB each, not contiguous
    record = a_record(*(a_layer(a_map(queries=array, keys=numbers(8, 3, 2**14))) for array in rows))
    tracemalloc.start()
    try:
        record.save(tmp_path / "a", lse=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "a").stat().st_size > 2**26
    assert peak < 2**23


def test_opening_reads_the_header_alone(tmp_path):
    """A file of 1 TB that is nearly all hole: whoever reads it whole does not come back."""
    one = a_map(queries=numbers(1, 1, 1), keys=numbers(1, 1, 1), values=numbers(1, 1, 1))
    a_record(a_layer(one)).save(tmp_path / "a", lse=False)
    header, described, data = headers(tmp_path / "a")
    header["layers.0.items.0.values"].update(shape=[1, 1, 2**38], data_offsets=[8, 8 + 2**40])
    write(tmp_path / "a", header, described, data)
    os.truncate(tmp_path / "a", (tmp_path / "a").stat().st_size - 4 + 2**40)
    found = file.open(tmp_path / "a")
    assert found.layers[0].map.values.nbytes == 2**40
    assert found.layers[0].heads[0].weights().tolist() == [[1.0]]


def mapped(path):
    """How many bytes of a file's map have been looked at; None where it is not mapped."""
    listing = Path("/proc/self/smaps")
    if not listing.exists():
        pytest.skip("this system does not list what is mapped")
    parts = listing.read_text().partition(str(path))[2].split()
    return int(parts[parts.index("Rss:") + 1]) * 1024 if parts else None


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_rectangle_reads_its_rows_and_columns_alone(dtype, tmp_path):
    tokens, wide = 2**14, np.zeros((2, 2**14, 512), dtype)
    one = a_map(queries=wide, keys=np.zeros_like(wide), mask=masks.causal(), lse=np.ones((2, tokens), np.float32))
    found = through(a_record(a_layer(one)), tmp_path / "a-name-to-find", lse=False)
    head = found.layers[0].heads[1]
    assert head.weights(slice(9000, 9064), slice(100, 164)).sum() == pytest.approx(64 * 64 * math.exp(-1))
    assert found.layers[0].map.queries.nbytes >= 2**24
    assert mapped("a-name-to-find") < 2**22


def test_the_map_is_closed_when_the_record_goes(tmp_path):
    found = through(a_record(), tmp_path / "a-name-to-find")
    found.layers[0].heads[0].weights()
    assert mapped("a-name-to-find")
    del found
    gc.collect()
    assert mapped("a-name-to-find") is None


def test_what_is_opened_cannot_be_changed(tmp_path):
    found = through(a_record(), tmp_path / "a")
    with pytest.raises(ValueError, match="read-only"):
        found.layers[0].map.queries[0] = 0


def test_opening_loads_neither_torch_nor_what_it_does_not_need(tmp_path):
    a_record().save(tmp_path / "a")
    program = (
        "import sys; from regard.record import file;"
        f"print(file.open({str(tmp_path / 'a')!r}).layers[0].weights().sum());"
        "print([name for name in ('torch', 'ml_dtypes', 'safetensors', 'matplotlib') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    total, heavy = answer.stdout.splitlines()
    assert float(total) == pytest.approx(H * Q, rel=1e-5)
    assert heavy == "[]"


# ---- log-sum-exps


def test_sums_are_computed_kept_or_left(tmp_path, monkeypatch):
    record = a_record()
    assert through(record, tmp_path / "a", lse=False).layers[0].map.lse is None
    record.layers[0].heads[0].weights()
    assert through(record, tmp_path / "a", lse=False).layers[0].map.lse is None  # one head's are not all
    computed = through(record, tmp_path / "a", lse=True).layers[0].map.lse
    np.testing.assert_array_equal(computed, record.layers[0].log_sum_exp())
    assert computed.dtype == np.float32
    np.testing.assert_array_equal(through(record, tmp_path / "b", lse=False).layers[0].map.lse, computed)

    assert through(a_record(), tmp_path / "a").layers[0].map.lse is not None
    work = H * Q * K * D
    monkeypatch.setattr(writing, "WORTH_SUMMING", 2 * work)
    layers = a_layer(a_map()), a_layer(a_map())
    assert all(layer.map.lse is not None for layer in through(a_record(*layers), tmp_path / "a").layers)
    monkeypatch.setattr(writing, "WORTH_SUMMING", 2 * work - 1)
    layers = a_layer(a_map()), a_layer(a_map())
    assert all(layer.map.lse is None for layer in through(a_record(*layers), tmp_path / "a").layers)
    with pytest.raises(OptionError, match="lse is 1"):
        record.save(tmp_path / "a", lse=1)


def test_stored_sums_are_used(tmp_path):
    lse = numbers(H, Q)
    found = through(a_record(a_layer(a_map(lse=lse))), tmp_path / "a", lse=False)
    np.testing.assert_array_equal(found.layers[0].heads[1].log_sum_exp(), lse[1])


# ---- what cannot be saved


@pytest.mark.parametrize(
    ("layer", "error", "words"),
    [
        (lambda: a_layer(a_map(queries=numbers(H, Q, D).astype(np.complex64))), DtypeError, "complex64"),
        (lambda: a_layer(a_map(keys=numbers(G, K, D + 1))), ShapeError, r"keys have shape \(2, 11, 9\)"),
        (lambda: a_layer(a_map(keys=numbers(3, K, D))), ShapeError, "3 key heads cannot serve 4"),
        (lambda: a_layer(a_map(queries=numbers(H, 0, D))), ShapeError, "without a 0"),
        (lambda: a_layer(a_map(sinks=numbers(1))), ShapeError, r"sinks have shape \(1,\); it should be \(4\)"),
        (lambda: a_layer(a_map(mask=masks.keys(numbers(K + 1) > 0))), ShapeError, "12 keys"),
        (lambda: a_layer(a_map(), head_numbers=(0,)), ShapeError, "names for"),
        (lambda: a_layer(a_map(), kind="self"), OptionError, "kind 'self'; there are encoder, decoder, cross"),
        (lambda: a_layer(a_map(), queries=(Tokens.of("ab"),)), ShapeError, "names for"),
        (lambda: a_layer(a_map(), keys=()), ShapeError, "1 maps, and tokens for 1 and 0"),
        (lambda: a_layer(a_map(mask=masks.causal(2**60))), OptionError, r"masks.0.offset is 1152921504606846976; a"),
        (lambda: a_layer(a_map(scale=math.nan)), OptionError, "scale is nan"),
        (lambda: a_layer(a_map(softcap=1e300)), OptionError, r"softcap is 1e\+300"),
        (lambda: a_layer(a_map(mask=type("Mine", (masks.mask.Both,), {})(masks.causal(), masks.causal()))), OptionError,
         "a Mine cannot be written"),
    ],
)  # fmt: skip
def test_what_could_not_be_read_is_not_written(layer, error, words, tmp_path):
    (tmp_path / "a").write_text("older")
    with pytest.raises(error, match=words):
        a_record(layer()).save(tmp_path / "a", lse=False)
    assert (tmp_path / "a").read_text() == "older"
    assert os.listdir(tmp_path) == ["a"]


def test_masks_of_too_many_parts():
    mask = masks.causal()
    for _ in range(40):
        mask = mask & mask  # 2⁴¹ parts
    with pytest.raises(OptionError, match="parts"):
        contents.Contents().mask(mask)


def test_a_record_without_layers(tmp_path):
    with pytest.raises(OptionError, match="no layers"):
        save(Run(layers=()), tmp_path / "a")


def test_headers_that_nobody_could_read(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "LARGEST_HEADER", 500)
    with pytest.raises(OptionError, match="save fewer items"):
        a_record().save(tmp_path / "a")
    assert not os.listdir(tmp_path)


# ---- places


def test_the_file_that_a_record_was_opened_from_may_be_written_again(tmp_path):
    found = through(a_record(), tmp_path / "a")
    again = through(found, tmp_path / "a")
    np.testing.assert_array_equal(again.layers[0].weights(), found.layers[0].weights())
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "a")
    assert through(a_record(), tmp_path / "link").items == 1
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "there") == ["a"]


@pytest.mark.parametrize(
    ("place", "words"),
    [("none/a", "there is no folder .*none; make it first"), ("", "is a folder"), ("old/a", "there is no folder"),
     ("x" * 300, "File name too long"), ("a\0b", "no name of a file")],
)  # fmt: skip
def test_places_that_cannot_be_written(place, words, tmp_path):
    (tmp_path / "old").write_text("older")
    with pytest.raises(FileError, match=words):
        a_record().save(f"{tmp_path}/{place}")
    assert os.listdir(tmp_path) == ["old"]


def test_devices_are_left_alone():
    with pytest.raises(FileError, match="no plain file"):
        a_record().save(os.devnull)
    with pytest.raises(FileError, match="no plain file"):
        file.open(os.devnull)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="may not be written to"):
        a_record().save(tmp_path / "a")


def test_a_disk_that_is_full(tmp_path):
    (tmp_path / "a").write_text("older")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(FileError, match=r"it takes [\d,]+ bytes, and there is no room"):
            a_record(a_layer(a_map(keys=numbers(G, K, D)), a_map(values=numbers(G, K, 500)))).save(tmp_path / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "older"


def test_an_error_half_way_leaves_nothing(tmp_path):
    class Gone(torch.Tensor):
        """A tensor that cannot be fetched, as when a GPU fails."""

        def cpu(self):
            raise KeyboardInterrupt

    queries, keys = torch.tensor(numbers(H, Q, D)).as_subclass(Gone), torch.tensor(numbers(G, K, D))
    with pytest.raises(KeyboardInterrupt):
        a_record(a_layer(a_map(queries=queries, keys=keys))).save(tmp_path / "a", lse=False)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", [None, 3, ["a"]])
def test_what_is_no_path(path):
    with pytest.raises(DtypeError, match="name of a file"):
        file.open(path)
    with pytest.raises(DtypeError, match="name of a file"):
        a_record().save(path)


# ---- files that are no records


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (b"", "the file is empty"),
        (b"1234", "4 bytes long"),
        (b"PK\3\4" + bytes(100), "announce a header of"),
        (b"\xff" * 64, "announce a header of 18,446,744,073,709,551,615 bytes"),
        ((2).to_bytes(8, "little") + b"[]", "not a JSON object"),
        ((2).to_bytes(8, "little") + b"{]", "not JSON"),
        ((2).to_bytes(8, "little") + b"\xff\xff", "UnicodeDecodeError"),
        ((2).to_bytes(8, "little") + b"{}", "safetensors file of 0 tensors"),
        ((8).to_bytes(8, "little") + b'{"a":NaN', "not JSON"),
        ((200_000).to_bytes(8, "little") + b"[" * 200_000, "RecursionError"),
        ((100_000_001).to_bytes(8, "little") + b"{" + bytes(10), "announce a header"),
    ],
)
def test_files_of_other_kinds(whole, words, tmp_path):
    (tmp_path / "a").write_bytes(whole)
    with pytest.raises(FileError, match=words) as caught:
        file.open(tmp_path / "a")
    assert str(tmp_path / "a") in str(caught.value)


def test_headers_above_the_limit(tmp_path):
    with (tmp_path / "a").open("wb") as out:
        out.write((100_000_001).to_bytes(8, "little"))
        out.truncate(200_000_000)
    with pytest.raises(FileError, match="at most 100,000,000"):
        file.open(tmp_path / "a")


def test_a_safetensors_file_of_a_model(tmp_path):
    save_file({f"encoder.{name}": numbers(2, 2) for name in "abc"}, tmp_path / "a")
    with pytest.raises(FileError, match=r"safetensors file of 3 tensors \('encoder.a', 'encoder.b', …\), not a record"):
        file.open(tmp_path / "a")


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        file.open(tmp_path / "a")
    with pytest.raises(FileError, match="a folder"):
        file.open(tmp_path)
    with pytest.raises(FileError, match="no name"):
        file.open("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no plain file"):
        file.open(tmp_path / "pipe")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A file with some of everything."""
    path = tmp_path_factory.mktemp("sample") / "a"
    one = a_map(mask=MASKS["both"] | masks.window(1, 2), bias=BIASES["t5"], sinks=numbers(H), softcap=20.0)
    other = a_map(queries=numbers(H, Q, D).astype(np.float16), keys=numbers(G, K, D).astype(np.float16),
                  mask=MASKS["ranges"] & masks.global_tokens([2]), bias=BIASES["alibi"])  # fmt: skip
    third = a_map(mask=masks.padding([7]) & masks.blocks(3) & ~MASKS["segments"], bias=BIASES["distances"])
    side = Tokens(tuple("abcde"), (True, True, False, True, True), (0, 0, 0, 1, 1), 3)
    a_record(a_layer(one, other), a_layer(third, queries=(side,), kind="decoder")).save(path)
    ask_everything(file.open(path))
    return path


def changed(place, value):
    """An edit of the description: the field at a place."""

    def edit(header, record):
        at = record
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = value(at[place[-1]]) if callable(value) else value

    return edit


def retold(name, **values):
    """An edit of a tensor's entry in the header."""
    return lambda header, record: header[name].update(values)


ITEM = ("layers", 0, "items", 0)
FIRST = "layers.0.items.0.queries"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (changed(("layers",), []), "layers is .*one object or more"),
        (changed(("layers",), {}), "layers is"),
        (changed(("layers", 0, "items"), []), "items is"),
        (changed(("layers", 0, "kind"), "sideways"), "kind 'sideways'; there are encoder, decoder"),
        (changed(("layers", 0, "kind"), ["encoder"]), "kind is"),
        (changed(("layers", 0, "name"), None), "name is None"),
        (changed(("layers", 0, "heads"), [0]), "names for"),
        (changed(("layers", 0, "heads"), [0, 1, 2, 0.5]), "heads is"),
        (changed(("layers", 0, "index"), 10**400), "index is"),
        (changed((*ITEM, "scale"), math.nan), "scale is nan"),
        (changed((*ITEM, "scale"), math.inf), "scale is inf"),
        (changed((*ITEM, "scale"), "1"), "finite number"),
        (changed((*ITEM, "scale"), True), "finite number"),
        (changed((*ITEM, "softcap"), 0), "above 0"),
        (changed((*ITEM, "offset"), 1.5), "whole number"),
        (changed((*ITEM, "offset"), 2**60), "whole number"),
        (changed((*ITEM, "queries"), None), "queries is None"),
        (changed((*ITEM, "queries"), "gone"), "no tensor 'gone'"),
        (changed((*ITEM, "keys"), FIRST), "the mask speaks of 11 keys and there are 5"),
        (changed((*ITEM, "values"), "layers.0.items.0.lse"), "values have shape"),
        (changed((*ITEM, "mask"), 99), "number 99"),
        (changed((*ITEM, "mask"), -1), "whole number from 0"),
        (changed((*ITEM, "bias"), 1.0), "whole number from 0"),
        (changed((*ITEM, "query_tokens"), 1), "names for"),
        (changed(("masks", 0, "kind"), "spiral"), "kind 'spiral'.*newer Regard"),
        (changed(("masks", 0, "kind"), "__class__"), "newer Regard"),
        (changed(("masks", 0), {"kind": "blocks", "size": 0}), "size is 0"),
        (changed(("masks", 0), {"kind": "blocks", "size": 2, "more": 1}), "it should have"),
        (changed(("masks", 0), {"kind": "window", "offset": None, "left": -1, "right": 2}), "left is -1"),
        (changed(("masks", 0), {"kind": "not", "one": {"mask": 0}}), "number 0, and there are 0"),
        (changed(("masks", 0), {"kind": "not", "one": 7}), "one is 7; it should be a mask"),
        (changed(("masks", 0), {"kind": "keys", "keep": {"tensor": FIRST}}), "booleans"),
        (changed(("masks", 0), {"kind": "packed", "bits": {"tensor": FIRST}, "keys": 9}), "bytes"),
        (changed(("masks",), lambda old: [{"kind": "both", "one": {"mask": max(at - 1, 0)}, "other": {"mask": at - 1}}
                                          if at else {"kind": "causal", "offset": None} for at in range(60)]), "parts"),
        (changed(("masks", 0), {"kind": "packed", "bits": {"tensor": "masks.7.first"}, "keys": 40}), "bytes"),
        (changed(("masks", 3, "keys"), 20), "20 keys do not take 2 bytes"),
        (changed(("masks", 7, "last"), {"tensor": "masks.13.key_ids"}), "differ in shape"),
        (changed(("biases", 0, "farthest"), []), "farthest is"),
        (changed(("biases", 0, "table"), {"tensor": FIRST}), "table is"),
        (changed(("biases", 0, "both_ways"), 1), "both_ways is 1"),
        (changed(("tokens", 0, "texts"), [1, 2]), "list of texts"),
        (changed(("tokens", 0, "begins"), "12"), "0 and 1"),
        (changed(("tokens", 0, "begins"), "1"), "5 tokens and 1 begins"),
        (changed(("tokens", 0, "segments"), [0]), "5 tokens and 1 segments"),
        (changed(("tokens", 0, "generated"), "x"), "generated is"),
        (changed(("model",), 3), "model is 3"),
        (retold(FIRST, dtype="F8"), "dtype 'F8'"),
        (retold(FIRST, dtype="F16"), "not its size"),
        (retold(FIRST, dtype=5), "dtype is 5"),
        (retold(FIRST, shape=[-4, -5, 8]), "shape is"),
        (retold(FIRST, shape=[4, 5, 9]), "not its size"),
        (retold(FIRST, shape=[5, 4, 8]), "have shape|names for"),
        (retold(FIRST, shape=[0, 2**40, 2**40]), "more than a record"),
        (retold(FIRST, shape=[1] * 40), "more than a record"),
        (retold(FIRST, data_offsets=[0]), "not its size"),
        (lambda header, record: header.pop("biases.0.table"), "begins at|tensors take"),
        (lambda header, record: header.update({FIRST: 5}), "has no 'dtype'"),
        (lambda header, record: header.update({FIRST: header["layers.0.items.0.keys"]}), "begins at|not its size"),
        (lambda header, record: header["__metadata__"].update(version="2"), "version 2 .*newer Regard"),
        (lambda header, record: header["__metadata__"].update(version="one"), "version of the format is 'one'"),
        (lambda header, record: header["__metadata__"].update(version="²"), "version of the format"),
        (lambda header, record: header["__metadata__"].update(format="pt"), "not a record"),
    ],
)  # fmt: skip
def test_damaged_descriptions(edit, words, sample, tmp_path):
    header, record, data = headers(sample)
    edit(header, record)
    write(tmp_path / "a", header, record, data)
    with pytest.raises(FileError, match=words) as caught:
        file.open(tmp_path / "a")
    assert str(tmp_path / "a") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "not JSON"), ("[]", "has no 'masks'"), ("null", "has no 'masks'"), ("[" * 100_000, "RecursionError"),
     ('{"masks":' * 50_000, "RecursionError"), ('{"masks": [], "masks": []}', "twice"), ("1" * 5000, "ValueError")],
)  # fmt: skip
def test_descriptions_that_are_hostile(text, words, sample, tmp_path):
    header, _, data = headers(sample)
    write(tmp_path / "a", header, text, data)
    with pytest.raises(FileError, match=words):
        file.open(tmp_path / "a")


def test_the_same_tensor_twice(sample, tmp_path):
    header, _, data = headers(sample)
    text = json.dumps(header)
    entry = json.dumps(header[FIRST])
    write(tmp_path / "a", f'{text[:-1]}, "{FIRST}": {entry}}}'.encode(), None, data)
    with pytest.raises(FileError, match="twice"):
        file.open(tmp_path / "a")


def test_files_cut_short_or_made_longer(sample, tmp_path):
    whole = sample.read_bytes()
    (tmp_path / "a").write_bytes(whole[:-1])
    with pytest.raises(FileError, match="the end of it is missing"):
        file.open(tmp_path / "a")
    (tmp_path / "a").write_bytes(whole + b"\0")
    with pytest.raises(FileError, match="something was added"):
        file.open(tmp_path / "a")


def open_and_ask(path):
    try:
        found = file.open(path)
    except FileError:
        return
    ask_everything(found)


SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=300, **SLOW)
@given(data=st.data())
def test_any_bytes_may_be_wrong(data, sample, tmp_path):
    whole = bytearray(sample.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1) | st.integers(0, 12))
        whole[place] = data.draw(st.integers(0, 255) | st.sampled_from(b'"{}[],:0129-eN\\'))
    cut = data.draw(st.just(len(whole)) | st.integers(0, len(whole)))
    (tmp_path / "a").write_bytes(whole[:cut])
    open_and_ask(tmp_path / "a")


HOSTILE = [
    None, True, False, 0, 1, -1, 3, 2**53, 2**63, -(2**64), 10**400, 0.5, -1.0, 1e308, math.nan, math.inf, "", "a",
    FIRST, "layers.0.items.0.keys", "masks.0.keep", "\ud800", [], [0], [[]], [None], ["a"], {}, {"mask": 0},
    {"mask": -1}, {"mask": "a"}, {"tensor": FIRST}, {"tensor": 0}, {"tensor": {}}, {"kind": []}, [{}], [0.5] * 4,
    {"kind": "causal", "offset": {"tensor": FIRST}}, {"kind": "given", "allowed": True},
    "masks.7.first", "masks.3.bits", "biases.0.table", {"tensor": "masks.7.first"}, {"tensor": "masks.1.keep"},
    *("BOOL", "U8", "U16", "I32", "U32", "I64", "U64", "F16", "BF16", "F32", "F64"), [1, 4], [5, 11], [2, 11, 8],
]  # fmt: skip


def places_of(thing, at=()):
    """The way to every value of a description."""
    steps = thing.keys() if isinstance(thing, dict) else range(len(thing)) if isinstance(thing, list) else ()
    for step in steps:
        yield (*at, step)
        yield from places_of(thing[step], (*at, step))


@settings(max_examples=500, **SLOW)
@given(data=st.data())
def test_any_value_may_be_anything(data, sample, tmp_path):
    header, record, rest = headers(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(
            st.sampled_from([record, record, record, {k: v for k, v in header.items() if k != "__metadata__"}])
        )
        *way, last = data.draw(st.sampled_from(list(places_of(where))))
        for step in way:
            where = where[step]
        if data.draw(st.integers(0, 5)):
            where[last] = deepcopy(data.draw(st.sampled_from(HOSTILE)))
        else:
            del where[last]
    write(tmp_path / "a", header, record, rest)
    open_and_ask(tmp_path / "a")
