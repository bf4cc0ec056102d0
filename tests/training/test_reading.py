"""The section [data] and the corpora that it names."""

import os

import pytest

from regard.errors import OptionError
from regard.training.reading import read, stamp
from regard.training.settings import DataSettings

PAIRS = ("source", "target")


def parts(fields=PAIRS, **data):
    """Both parts in one: what is learned from and what is held out."""
    kept, held = read(DataSettings(**data), fields)
    return [*kept, *held]


def written(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_columns_by_their_names(tmp_path):
    path = written(tmp_path / "a.tsv", "en\tde\tnote", "one\teins\tx", "two\tzwei\ty")
    kept, held = read(DataSettings(paths=[path], fields={"source": "en", "target": "de"}), PAIRS)
    assert sorted([*kept, *held], key=str) == [
        {"source": "one", "target": "eins"}, {"source": "two", "target": "zwei"},
    ]  # fmt: skip


def test_parallel_files_are_two(tmp_path):
    a, b = written(tmp_path / "a.en", "one", "two"), written(tmp_path / "a.de", "eins", "zwei")
    assert sorted(parts(paths=[a, b], form="parallel"), key=str)[0] == {"source": "one", "target": "eins"}
    with pytest.raises(OptionError, match="form is parallel and there are 1 paths; give two"):
        parts(paths=[a], form="parallel")


def test_several_files_of_questions_are_one_corpus(tmp_path):
    lines = [f'{{"context": "here {word}", "qas": [["which?", "{word}", 5]]}}' for word in ("one", "two")]
    paths = [written(tmp_path / f"{i}.jsonl", line) for i, line in enumerate(lines)]
    found = parts(("question", "context", "answer", "start"), paths=paths, form="questions")
    assert sorted(example["answer"] for example in found) == ["one", "two"]


@pytest.mark.parametrize(("form", "count"), [("text", 4), ("paragraphs", 2), ("whole", 1)])
def test_texts_by_line_paragraph_or_file(tmp_path, form, count):
    path = written(tmp_path / "a.txt", "one", "two", "", "three", "four")
    assert len(parts(("text",), paths=[path], form=form)) == count


def test_held_out_files_are_all_of_what_is_held_out(tmp_path):
    a, b = written(tmp_path / "a.txt", "one", "two"), written(tmp_path / "b.txt", "three")
    kept, held = read(DataSettings(paths=[a], held_out=[b]), ("text",))
    assert [example["text"] for example in kept] == ["one", "two"]
    assert [example["text"] for example in held] == ["three"]


def test_no_data_and_too_few_fields_are_refused(tmp_path):
    with pytest.raises(OptionError, match="there is no data to learn from"):
        read(DataSettings(), PAIRS)
    data = DataSettings(paths=[str(tmp_path / "a.tsv")], fields={"source": "en"})
    with pytest.raises(OptionError, match=r"fields has source, and this task needs target as well; as in: --fields"):
        read(data, PAIRS)


def test_a_name_on_the_hub_needs_its_split():
    with pytest.raises(OptionError, match="'wmt19' names no split"):
        read(DataSettings(paths=["wmt19"], form="hub"), PAIRS)


def test_a_stamp_tells_files_apart(tmp_path):
    written(tmp_path / "a.txt", "one")
    (tmp_path / "inner").mkdir()
    written(tmp_path / "inner" / "b.txt", "two")
    first = stamp([str(tmp_path)])
    assert [os.path.basename(name) for name, _, _ in first] == ["a.txt", "b.txt"]
    assert stamp([str(tmp_path)]) == first
    written(tmp_path / "inner" / "b.txt", "two more")
    assert stamp([str(tmp_path)]) != first
