"""A token store: what goes in comes out, nothing is lost in silence, and what is broken says so."""

import fcntl
import json
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DtypeError, FileError, OptionError
from regard.text.store import TokenStore

PAIRS = [
    {"source": [5, 6, 2], "target": [7, 2]},
    {"source": [8, 2], "target": [9, 10, 11, 12, 2]},
    {"source": [13, 14, 15, 16, 2], "target": [2]},
]
FIELDS = ("source", "target")


def build(folder, examples=PAIRS, fields=FIELDS, vocabulary=20, **options):
    return TokenStore.build(folder, examples, fields, vocabulary=vocabulary, **options)


def lists(examples):
    return [{name: ids.tolist() for name, ids in example.items()} for example in examples]


rows = st.lists(st.integers(0, 99_999), min_size=1, max_size=6)


@given(examples=st.lists(st.fixed_dictionaries({"a": rows, "b": rows}), min_size=1, max_size=20), data=st.data())
def test_what_goes_in_comes_out_in_any_order(examples, data, tmp_path_factory):
    store = build(tmp_path_factory.mktemp("store") / "s", examples, ("a", "b"), vocabulary=100_000)
    numbers = data.draw(st.lists(st.integers(0, len(examples) - 1)))
    assert lists(store.read(numbers)) == [examples[number] for number in numbers]
    assert store.lengths(numbers, "b").tolist() == [len(examples[number]["b"]) for number in numbers]
    assert len(store) == len(examples)
    assert store.total("a") == sum(len(example["a"]) for example in examples)


@pytest.mark.parametrize(("vocabulary", "size"), [(65_536, 2), (65_537, 4)])
def test_an_id_has_as_many_bytes_as_it_needs(tmp_path, vocabulary, size):
    store = build(tmp_path, [{"text": [0, vocabulary - 1]}], ("text",), vocabulary)
    assert (tmp_path / "ids.bin").stat().st_size == 2 * size
    (example,) = store.read([0])
    assert example["text"].tolist() == [0, vocabulary - 1]
    assert example["text"].dtype == np.int64


def test_far_and_near_examples_are_found_alike(tmp_path):
    store = build(tmp_path, ({"text": [number % 7] * (1 + number % 5)} for number in range(3000)), ("text",))
    numbers = np.array([2999, 0, 1500, 1501, 1500, 3])
    assert store.lengths(numbers, "text").tolist() == (1 + numbers % 5).tolist()
    assert [example["text"][0] for example in store.read(numbers)] == (numbers % 7).tolist()


def test_it_opens_again_with_its_words(tmp_path):
    told = build(tmp_path, description={"tokenizer": "ab" * 32}).told
    store = pickle.loads(pickle.dumps(TokenStore.open(str(tmp_path))))
    assert store.told == told
    assert store.told.description == {"tokenizer": "ab" * 32}
    assert store.told.tokens == {"source": 10, "target": 8}
    assert store.told.sentence() == "3 examples, 18 tokens; none was cut or skipped."
    assert lists(store.read([1])) == [PAIRS[1]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ends.bin", "ids.bin", "store.json"]


def test_what_is_too_long_is_cut_but_for_its_end(tmp_path):
    store = build(tmp_path, longest={"source": 3, "target": 4})
    assert [pair["source"] for pair in lists(store.read(range(3)))] == [[5, 6, 2], [8, 2], [13, 14, 2]]
    assert lists(store.read([1]))[0]["target"] == [9, 10, 11, 2]
    assert store.told.cut == {"source": 1, "target": 1}
    assert store.told.sentence() == (
        "3 examples, 15 tokens; 1 of 3 were cut at 3 tokens in 'source'; 1 of 3 were cut at 4 tokens in 'target'."
    )


def test_or_skipped(tmp_path):
    store = build(tmp_path, longest={"source": 4, "target": 9}, too_long="skip")
    assert lists(store.read(range(len(store)))) == PAIRS[:2]
    assert store.told.skipped == 1
    assert store.told.sentence() == (
        "2 examples, 12 tokens; 1 more were skipped, being longer than 4 tokens in 'source' or 9 tokens in 'target'."
    )


def test_or_an_error_with_its_number(tmp_path):
    with pytest.raises(OptionError, match="example 2 has 5 tokens in 'source', and the limit is 4"):
        build(tmp_path, longest={"source": 4}, too_long="error")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("example", "error", "words"),
    [
        ({"text": [3, 20]}, OptionError, "example 1 has 20 in 'text'; with a vocabulary of 20, ids are 0 to 19"),
        ({"text": [3, -1]}, OptionError, "example 1 has -1 in 'text'"),
        ({"text": []}, OptionError, "example 1 has no ids in 'text'"),
        ({"words": [1]}, OptionError, "example 1 has no 'text'; it has 'words'"),
        ({"text": [1.5]}, DtypeError, "example 1 should have ids, whole numbers, in 'text'"),
        ({"text": "word"}, DtypeError, "example 1 should have ids"),
        ({"text": [2**70]}, DtypeError, "example 1 should have ids"),
    ],
)
def test_an_example_that_is_none_is_named(tmp_path, example, error, words):
    with pytest.raises(error, match=re.escape(words)):
        build(tmp_path, [{"text": [1]}, example], ("text",))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fields": ()}, "fields is ()"),
        ({"fields": ("source", "source")}, "each once"),
        ({"vocabulary": 0}, "vocabulary is 0"),
        ({"longest": {"text": 5}}, "longest has 5 for 'text'"),
        ({"longest": {"source": 0}}, "longest has 0 for 'source'"),
        ({"too_long": "shorten"}, "too_long is 'shorten'"),
        ({"examples": []}, "there are no examples"),
        ({"longest": {"source": 1}, "too_long": "skip"}, "3 came, all longer than 1 tokens in 'source'"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, words):
    with pytest.raises(OptionError, match=re.escape(words)):
        build(tmp_path, **options)


def test_a_description_is_text(tmp_path):
    with pytest.raises(DtypeError, match="its names and values must be text"):
        build(tmp_path, description={"length": 5})


def test_what_is_not_there(tmp_path):
    store = build(tmp_path / "s")
    for number in (-1, 3):
        with pytest.raises(OptionError, match=f"no example {number}; the store has 0 to 2"):
            store.read([0, number])
    with pytest.raises(OptionError, match="has no 'text'; it has source, target"):
        store.lengths([0], "text")
    with pytest.raises(FileError, match="there is no token store in"):
        TokenStore.open(tmp_path / "nowhere")


def test_a_finished_store_is_left_alone(tmp_path):
    build(tmp_path)
    with pytest.raises(FileError, match="has a finished token store; open it, or remove the folder"):
        build(tmp_path, PAIRS[:1])
    assert len(TokenStore.open(tmp_path)) == 3


def test_one_process_builds_at_a_time(tmp_path):
    directory = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    with pytest.raises(FileError, match="another process is building a token store in"):
        build(tmp_path)
    os.close(directory)
    build(tmp_path)


def test_a_killed_build_is_begun_anew(tmp_path):
    program = f"""
import os, signal
from regard.text.store import TokenStore
def examples():
    for number in range(200_000):
        yield {{"text": [number % 7, 2]}}
    os.kill(os.getpid(), signal.SIGKILL)
TokenStore.build({str(tmp_path)!r}, examples(), ("text",), vocabulary=20)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "ids.bin").stat().st_size > 0
    with pytest.raises(FileError, match=r"is unfinished: it has no store\.json"):
        TokenStore.open(tmp_path)
    assert lists(build(tmp_path).read(range(3))) == PAIRS


@pytest.fixture
def small_disk():
    """Files may have 100,000 bytes and no more; the system says so where it would say that a disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("size", "file"), [(1_000_000, "ids.bin"), (50_000, "ids.bin"), (2, "ends.bin")])
@pytest.mark.usefixtures("small_disk")
def test_a_full_disk(tmp_path, size, file):
    examples = ({"text": [1] * size} for _ in range(100_000 // size + 2))
    with pytest.raises(FileError, match=rf"cannot write .*{file}: File too large, after 100,000 bytes"):
        build(tmp_path, examples, ("text",))
    assert not list(tmp_path.iterdir()), "the room is given back"


def test_damaged_files(tmp_path):
    build(tmp_path)
    for name, size in (("ids.bin", 36), ("ends.bin", 56)):
        path = tmp_path / name
        whole = path.read_bytes()
        for content in (whole[:-1], whole + b"\0", b""):
            path.write_bytes(content)
            with pytest.raises(FileError, match=rf"{name} is damaged: it has {len(content)} bytes and .* {size}\. "):
                TokenStore.open(tmp_path)
        path.unlink()
        with pytest.raises(FileError, match=f"has lost {name}"):
            TokenStore.open(tmp_path)
        path.write_bytes(whole)
    assert len(TokenStore.open(tmp_path)) == 3


def test_damage_that_keeps_the_size(tmp_path):
    store = build(tmp_path)
    ends = np.fromfile(tmp_path / "ends.bin", "<i8")
    for value in (10**12, -4, 3):
        wrong = ends.copy()
        wrong[2] = value
        wrong.tofile(tmp_path / "ends.bin")
        with pytest.raises(FileError, match=r"ends\.bin is damaged: places in it are out of order"):
            store.read([0])
    wrong = ends.copy()
    wrong[-1] = 17
    wrong.tofile(tmp_path / "ends.bin")
    with pytest.raises(FileError, match="from 0 to 17, not from 0 to 18"):
        TokenStore.open(tmp_path)
    ends.tofile(tmp_path / "ends.bin")
    (tmp_path / "ids.bin").write_bytes(b"\xff" * 36)
    with pytest.raises(FileError, match="an id is 65535, and the vocabulary 20"):
        store.read([0])


def test_files_that_shrink_while_they_are_used(tmp_path):
    store = build(tmp_path)
    os.truncate(tmp_path / "ids.bin", 4)
    with pytest.raises(FileError, match=r"ids\.bin is too short: 4 bytes where 10 were to be read"):
        store.read([0])
    (tmp_path / "ids.bin").unlink()
    with pytest.raises(FileError, match=r"cannot read .*ids\.bin: No such file"):
        store.read([0])


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3", b'{"fields": ["text"]}', b"null"])
def test_foreign_json(tmp_path, content):
    build(tmp_path)
    (tmp_path / "store.json").write_bytes(content)
    with pytest.raises(FileError, match=r"store\.json is (damaged: it is not JSON|not of a token store)"):
        TokenStore.open(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"examples": 0}, {"examples": "3"}, {"examples": 2.5}, {"fields": []}, {"fields": "source"},
        {"fields": ["source"]}, {"tokens": {"source": 10}}, {"tokens": {"source": 10, "target": 1}}, {"tokens": 18},
        {"cut": {"source": 0}}, {"skipped": -1}, {"skipped": None}, {"vocabulary": 0},
        {"description": {"a": 1}}, {"description": []},
        {"longest": {"text": 5}}, {"more": 1},
    ],
)  # fmt: skip
def test_counts_that_make_no_sense(tmp_path, change):
    build(tmp_path)
    path = tmp_path / "store.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FileError, match=r"store\.json is damaged: its counts are missing or make no sense"):
        TokenStore.open(tmp_path)


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """Built from a stream of 4 million ids, 8 MB on disk, and read from all over, in less than 4 MB."""
    row = list(range(250)) * 4
    tracemalloc.start()
    try:
        store = build(tmp_path, ({"text": row} for _ in range(4000)), ("text",), 1000)
        for start in range(0, 4000, 50):
            store.read(range(start, start + 50))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "ids.bin").stat().st_size == 8_000_000
    assert peak < 4_000_000
