"""A corpus is never held: memory stays where it is, whatever the size of the file."""

import gzip
import tracemalloc

import pytest

from regard.text.corpora import read, split

MEGABYTE = 2**20


def peak(corpus):
    """The examples of a pass, and the most memory that Python held for it at once."""
    tracemalloc.start()
    try:
        return sum(1 for _ in corpus), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """200 MB of text in a small file: the same megabyte again and again, as members of one archive."""
    path = tmp_path_factory.mktemp("large") / "large.tsv.gz"
    line = b"en " * 10_000 + b"\t" + b"zh " * 10_000 + b"\n"
    member = gzip.compress(line * 17)
    path.write_bytes(gzip.compress(b"source\ttarget\n") + member * 200)
    assert len(line) * 17 * 200 > 200_000_000
    return path


def test_a_large_file_streams(packed):
    count, memory = peak(read(packed, ["source", "target"]))
    assert count == 17 * 200
    assert memory < 10 * MEGABYTE


def test_its_parts_stream(packed):
    kept, held = split(read(packed, ["source", "target"]), 0.5)
    sizes = [peak(part) for part in (kept, held)]
    assert sorted(count for count, _ in sizes) == [0, 17 * 200], "all of them are the same text"
    assert max(memory for _, memory in sizes) < 10 * MEGABYTE


@pytest.mark.parametrize("options", [{}, {"paragraphs": True}, {"whole": True}])
def test_a_line_without_end_is_not_held(tmp_path, options):
    path = tmp_path / "hole.txt"
    with path.open("wb") as file:
        file.truncate(200 * MEGABYTE)  # a hole: nothing is written, zeros are read
    corpus = read(path, **options)
    count, memory = peak(corpus)
    assert (count, corpus.skipped.count) == (0, 1)
    assert memory < 10 * MEGABYTE


def test_a_quote_that_is_never_closed_is_not_held(tmp_path):
    path = tmp_path / "open.csv.gz"
    path.write_bytes(gzip.compress(b'text\n"open\n') + gzip.compress(b"a line " * 300 + b"\n") * 10_000)
    corpus = read(path, "text")
    count, memory = peak(corpus)
    assert (count, corpus.skipped.count) == (10_000, 1)
    assert memory < 10 * MEGABYTE
