"""Every form of file, packed or not, gives its texts as they are; what is not there is said."""

import bz2
import csv
import gzip
import io
import json
import lzma
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileError, MissingExtra, OptionError
from regard.text.corpora import Corpus, parallel, read

ODD = "a\u2028b\u0085c\x0bd\x0ce\rf\u2029g"  # signs at which str.splitlines parts a text, and a file does not
try:
    import compression.zstd as ZSTD
except ImportError:
    try:
        import backports.zstd as ZSTD
    except ImportError:
        ZSTD = None
PACKING = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
PAIRS = [{"source": "one, two", "target": "一，二"}, {"source": ODD, "target": '"三"'}]
SIGNS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
CELLS = st.text(SIGNS, min_size=1).filter(lambda text: not text.isspace() and not text.endswith("\r"))


def written(folder, name, content):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize(
    ("ending", "content", "fields"),
    [
        (".tsv", f'en\tid\tzh\none, two\t1\t一，二\n{ODD}\t2\t"三"\n', {"source": "en", "target": "zh"}),
        (".TSV", f'one, two\t1\t一，二\n{ODD}\t2\t"三"', {"source": 0, "target": 2}),
        (".csv", f'source,target\r\n"one, two",一，二\r\n{ODD},"""三"""\r\n', ["source", "target"]),
        (".jsonl", "\n".join(json.dumps(pair, ensure_ascii=False) for pair in PAIRS), ["source", "target"]),
        (".ndjson", "\n".join(json.dumps({"t": pair}) for pair in PAIRS), {"source": "t.source", "target": "t.target"}),
    ],
)
def test_forms(tmp_path, ending, content, fields, packing):
    path = written(tmp_path, f"some.{ending}{packing}", PACKING[packing](content.encode()))
    corpus = read(path, fields)
    assert list(corpus) == PAIRS
    assert list(corpus) == PAIRS, "a second pass"
    assert corpus.skipped.count == 0
    assert list(pickle.loads(pickle.dumps(corpus))) == PAIRS


def test_plain_text(tmp_path):
    path = written(tmp_path, "a.txt", f"\ufeff first \r\n{ODD}\r\n\r\n \t\nlast")
    assert list(read(path)) == [{"text": " first "}, {"text": ODD}, {"text": "last"}]
    assert list(read(str(path), "source", paragraphs=True)) == [{"source": f" first \n{ODD}"}, {"source": "last"}]
    assert list(read(path, whole=True)) == [{"text": f" first \n{ODD}\n\n \t\nlast"}]


@pytest.mark.parametrize("packing", PACKING)
def test_a_mark_at_the_beginning_goes(tmp_path, packing):
    path = written(tmp_path, f"a.tsv{packing}", PACKING[packing]("\ufefftext\tlabel\nx\ty\n".encode()))
    assert list(read(path, ["text", "label"])) == [{"text": "x", "label": "y"}]


def test_several_files_one_after_the_other(tmp_path):
    one = written(tmp_path, "b.csv", "text\nb\n")
    two = written(tmp_path, "a.tsv.gz", gzip.compress(b"label\ttext\n1\ta\n"))
    assert [example["text"] for example in read([one, two, one], ["text"])] == ["b", "a", "b"]


def test_json_numbers_stay_as_they_are_written(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"a": 1.50, "b": true, "c": 12345678901234567890123}\n')
    assert list(read(path, ["a", "b", "c"])) == [{"a": "1.50", "b": "true", "c": "12345678901234567890123"}]


@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1))
def test_csv_is_what_python_writes(tmp_path_factory, rows):
    """Against Python's own writer, but for the ends of lines, which all become one."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows([("text", "label"), *rows])
    path = written(tmp_path_factory.getbasetemp(), "any.csv", out.getvalue())
    assert [tuple(example.values()) for example in read(path, ["text", "label"])] == [
        tuple(cell.replace("\r\n", "\n") for cell in row) for row in rows
    ]


@given(texts=st.lists(CELLS, min_size=1))
def test_any_text_comes_back_from_json_lines(tmp_path_factory, texts):
    lines = "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    path = written(tmp_path_factory.getbasetemp(), "any.jsonl", lines)
    assert [example["text"] for example in read(path, "text")] == texts


def test_folders_of_labels(tmp_path):
    for name in ("pos/1.txt", "pos/0.txt", "neg/0.txt.gz", "urls.txt", "pos/.hidden.txt", "neg/notes.md"):
        text = f"{name}\nand on\n".encode()
        written(tmp_path, name, gzip.compress(text) if name.endswith(".gz") else text)
    expected = [
        {"text": "neg/0.txt.gz\nand on", "label": "neg"},
        {"text": "pos/0.txt\nand on", "label": "pos"},
        {"text": "pos/1.txt\nand on", "label": "pos"},
    ]
    assert list(read(tmp_path)) == list(read(tmp_path, ["text", "label"])) == expected


def test_a_folder_of_files(tmp_path):
    written(tmp_path, "b.jsonl", '{"text": "b"}\n')
    written(tmp_path, "a.csv", "text\na\n")
    written(tmp_path, "README.md", "no data")
    assert list(read(tmp_path, ["text"])) == [{"text": "a"}, {"text": "b"}]


def test_a_form_by_word(tmp_path):
    path = written(tmp_path, "enwik", "x\ty\n")
    assert list(read(path, form="text")) == [{"text": "x\ty"}]
    assert list(read(path, {"label": 1}, form="tsv")) == [{"label": "y"}]
    with pytest.raises(FileError, match=r"does not say how it is written.*\.tsv.*form"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "fields", "says"),
    [
        ("a.tsv", "en\tzh\nx\ty\n", {"source": "de"}, "no column de; its first line names: en, zh"),
        ("a.csv", "en,en\nx,y\n", {"source": "en"}, "several columns en"),
        ("a.tsv", "x\ty\n", {"source": 2}, "no column 2: line 1 has 2"),
        ("a.jsonl", '{"en": "x"}\n', {"source": "de"}, "no de; its first object has: en"),
        ("a.tsv", b"\xff\n", ["text"], "line 1: not UTF-8 at byte 1, which is 0xff; the first line must name"),
        ("a.tsv", "\ufefftext\nx\n".encode("utf-16"), ["text"], "UTF-16; save it as UTF-8"),
        ("a.tsv", "text\n", ["text"], "There is no example"),
        ("a.txt", "", None, "There is no example"),
        ("a.txt.gz", gzip.compress(b"x\n" * 9999, mtime=0)[:-20], None, r"a\.txt\.gz is damaged"),
        ("a.txt.gz", b"plain", None, r"a\.txt\.gz is damaged, or not what its name says"),
        ("a.txt.xz", lzma.compress(b"x\n" * 9999)[:-20], None, r"a\.txt\.xz is damaged"),
        ("a.txt.xz", b"plain", None, r"a\.txt\.xz is damaged"),
        ("a.txt.bz2", bz2.compress(b"x\n" * 9999)[:-20], None, r"a\.txt\.bz2 is damaged"),
        ("a.txt.bz2", b"plain", None, r"a\.txt\.bz2 cannot be read: Invalid data"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, content, fields, says):
    with pytest.raises(FileError, match=says):
        list(read(written(tmp_path, name, content), fields))


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(FileError, match=r"no file .*absent\.tsv"):
        read(tmp_path / "absent.tsv", ["text"])
    with pytest.raises(FileError, match="has no file to read"):
        read(tmp_path)
    (tmp_path / "label").mkdir()
    with pytest.raises(FileError, match="label has no file to read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("a.tsv", {}, "which columns"),
        ("a.tsv", {"fields": []}, "fields is empty"),
        ("a.tsv", {"fields": {"a": 0, "b": "x"}}, "all names or all numbers"),
        ("a.tsv", {"fields": {"a": -1}}, "all names or all numbers"),
        ("a.tsv", {"fields": ["a", "a"]}, "twice"),
        ("a.tsv", {"fields": ["a"], "whole": True}, "whole is for plain text"),
        ("a.jsonl", {"fields": {"a": 0}}, "have names"),
        ("a.txt", {"fields": ["a", "b"]}, "plain text, which has one"),
        ("a.txt", {"fields": {"text": "review"}}, "plain text, which has one"),
        ("a.txt", {"whole": True, "paragraphs": True}, "cannot both be"),
        ("a.txt", {"form": "xml"}, "form is 'xml'; it is one of tsv, csv"),
        ("a.txt", {"most_bad": -1}, "most_bad is -1"),
    ],
)
def test_options_that_make_no_sense(tmp_path, name, options, says):
    with pytest.raises(OptionError, match=says):
        list(read(written(tmp_path, name, "x\n"), **options))


@pytest.mark.skipif(ZSTD is not None, reason="a module for .zst files is here")
def test_zst_without_its_module(tmp_path):
    with pytest.raises(MissingExtra, match=r"pip install backports\.zstd"):
        list(read(written(tmp_path, "a.txt.zst", b"")))


@pytest.mark.skipif(ZSTD is None, reason="reading .zst is not tried: backports.zstd is not here")
def test_zst(tmp_path):
    path = written(tmp_path, "a.txt.zst", ZSTD.compress(b"one\ntwo\n"))
    assert list(read(path)) == [{"text": "one"}, {"text": "two"}]
    with pytest.raises(FileError, match="damaged"):
        list(read(written(tmp_path, "b.txt.zst", path.read_bytes()[:-4])))
    with pytest.raises(FileError, match="damaged"):
        list(read(written(tmp_path, "c.txt.zst", b"plain text")))


def test_parallel(tmp_path):
    source = written(tmp_path, "train.en", f"one\r\n{ODD}\n\nfour")
    target = written(tmp_path, "train.zh.gz", gzip.compress("一\n二\n三\n \n".encode()))
    corpus = parallel(source, target)
    assert list(corpus) == [{"source": "one", "target": "一"}, {"source": ODD, "target": "二"}]
    assert [str(bad) for bad in corpus.skipped.first] == [
        f"{source}, line 3: source is empty",
        f"{target}, line 4: target is empty",
    ]


@pytest.mark.parametrize(("left", "right"), [(3, 5), (4, 0)])
def test_parallel_files_of_different_lengths(tmp_path, left, right):
    corpus = parallel(written(tmp_path, "a", "x\n" * left), written(tmp_path, "b", "y\n" * right))
    with pytest.raises(FileError, match=rf"a has {left} lines and .*b has {right};"):
        list(corpus)


def test_parallel_names_the_file_that_is_damaged(tmp_path):
    good, bad = written(tmp_path, "a", "x\n"), written(tmp_path, "b.xz", b"plain")
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(FileError, match=r"b\.xz is damaged"):
            list(parallel(*pair))


def test_a_corpus_is_anything_that_finds_examples():
    assert list(Corpus([{"text": "x"}])) == [{"text": "x"}]
