"""What is malformed is counted with its place and why, left out up to a limit, and then an error."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileError
from regard.text.corpora import read
from regard.text.corpora.lines import LONGEST


def found(folder, name, content, fields, **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    corpus = read(path, fields, **options)
    texts = [example["text"] for example in corpus]
    assert all(bad.file == str(path) for bad in corpus.skipped.first)
    return texts, [(bad.line, bad.why) for bad in corpus.skipped.first]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"x", "1 column, and line 1 has 2"),
        (b"", "1 column, and line 1 has 2"),
        (b"x\ty\tz", "3 columns, and line 1 has 2"),
        (b"\ty", "text is empty"),
        (b"x\t ", "label is empty"),
        (b"abc\xff\ty", "not UTF-8 at byte 4, which is 0xff"),
        (b"a\0\ty", "byte 2 is 0x00"),
        (b"x" * LONGEST + b"\ty", f"over {LONGEST} bytes long"),
        (b"x" * 3 * LONGEST + b"\ty", f"over {LONGEST} bytes long"),
    ],
    ids=lambda value: str(value)[:20],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_of_a_table(tmp_path, line, why, end):
    content = end.join([b"text\tlabel", b"one\t1", line, b"two\t2"])
    texts, [(place, said)] = found(tmp_path, "a.tsv", content, ["text", "label"])
    assert (texts, place) == (["one", "two"], 3)
    assert said.startswith(why)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON at character 2"),
        ("", "no JSON at character 1"),
        ('{"text": "x"} {"text": "y"}', "no JSON at character 15"),
        ('["x"]', "JSON, but no object"),
        ('{"other": "x"}', "no text"),
        ('{"text": null}', "text is null"),
        ('{"text": ["x"]}', "text is list"),
        ('{"text": {"en": "x"}}', "text is dict"),
        ('{"text": ""}', "text is empty"),
        ('{"text": NaN}', "NaN, which is no JSON"),
        ('{"text": "\\ud800"}', "text has half of a character"),
        ('{"text": "\\u0000"}', "text has the sign U\\+0000"),
        ("[" * 100_000, "JSON that is nested too deep"),
    ],
    ids=lambda value: value[:20],
)
def test_json_lines(tmp_path, line, why):
    content = f'{{"text": "one"}}\n{line}\n{{"text": "two"}}\n'
    texts, [(place, said)] = found(tmp_path, "a.jsonl", content, ["text"])
    assert (texts, place) == (["one", "two"], 2)
    assert said.startswith(why.replace("\\", ""))


@pytest.mark.parametrize(
    ("rows", "texts", "lines"),
    [
        (['"a\nb",1', "c,2"], ["a\nb", "c"], []),
        (['"a"b,1', "c,2"], ["c"], [2]),
        (['"never closed,1', "c,2", "d,3"], ["c", "d"], [2]),
        (['"a\nb",1,2', "c,2"], ["c"], [2]),
        (['5" wide,1', '"say ""a""",2'], ['say "a"'], [2]),
        (['"a', "b\xff", 'c",1', "d,2"], ["d"], [2, 3, 4]),
        (['"a', "x" * LONGEST, 'c",1', "d,2"], ["d"], [2, 3, 4]),
    ],
)
def test_commas(tmp_path, rows, texts, lines):
    content = "\n".join(["text,label", *rows]).encode("latin-1")
    given, bad = found(tmp_path, "a.csv", content, ["text", "label"])
    assert given == texts
    assert [place for place, _ in bad] == lines


@given(junk=st.text('",\na', max_size=40))
def test_a_row_of_junk_never_costs_the_lines_before_it(tmp_path_factory, junk):
    content = f"text,label\none,1\n{junk}"
    texts, bad = found(tmp_path_factory.getbasetemp(), "junk.csv", content, ["text", "label"])
    assert texts[0] == "one"
    if not any("quote" in why for _, why in bad):
        rows = list(csv.reader(io.StringIO(content, newline=""), strict=True))
        assert texts == [row[0] for row in rows[1:] if len(row) == 2 and all(cell.strip() for cell in row)]


def test_a_bad_line_spoils_its_paragraph_and_its_file(tmp_path):
    content = b"one\n\ntwo\nb\xff\ntwo\n\n\nthree"
    assert found(tmp_path, "a.txt", content, None, paragraphs=True) == (
        ["one", "three"],
        [(4, "not UTF-8 at byte 2, which is 0xff")],
    )
    assert found(tmp_path, "a.txt", content, None, whole=True)[1] == [(4, "not UTF-8 at byte 2, which is 0xff")]
    long = b"x\n" * (LONGEST // 2 + 1)
    assert found(tmp_path, "a.txt", long + b"\ny", None, paragraphs=True)[0] == ["y"]


def test_the_longest_line_is_a_line(tmp_path):
    for end in (b"", b"\n", b"\r\n"):
        for mark in (b"", b"\xef\xbb\xbf"):
            content = mark + b"x" * (LONGEST - len(mark)) + end
            assert len(found(tmp_path, "a.txt", content, None)[0]) == 1
        for start in (b"", b"\xef\xbb\xbf"):
            texts, bad = found(tmp_path, "a.txt", start + b"x" * (LONGEST + 1) + end + b"\ny", None)
            assert [place for place, _ in bad] == [1]
            assert texts == ["y"]


def test_the_limit(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n" + "x\n" * 3 + "a\tb\n" + "x\n", encoding="utf-8")
    corpus = read([path, path], ["text", "label"], most_bad=8)
    for _ in range(2):
        assert len(list(corpus)) == 2
        assert corpus.skipped.count == len(corpus.skipped.first) == 8
    few = read([path, path], ["text", "label"], most_bad=7)
    with pytest.raises(FileError, match=rf"{path}, line 6: 1 column.* 7 malformed .* The first was {path}, line 2: 1"):
        list(few)
    assert few.skipped.count == 7
    with pytest.raises(FileError, match=r"line 2: 1 column, and line 1 has 2\. 0 malformed"):
        list(read(path, ["text", "label"], most_bad=0))


def test_many_are_counted_and_few_are_told(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}\n' + "{\n" * 100, encoding="utf-8")
    corpus = read(path, "text")
    assert len(list(corpus)) == 1
    assert corpus.skipped.count == 100
    assert [bad.line for bad in corpus.skipped.first] == list(range(2, 12))


def test_two_passes_at_once_count_for_themselves(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}\n{\n{"text": "y"}\n', encoding="utf-8")
    corpus = read(path, "text", most_bad=1)
    assert [(one["text"], two["text"]) for one, two in zip(corpus, corpus, strict=True)] == [("x", "x"), ("y", "y")]
    assert corpus.skipped.count == 1
