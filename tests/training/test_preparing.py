"""What a run reads: made once of the text, found again, and refused where it is of other text."""

import shutil
from dataclasses import replace

import pytest

from regard.errors import FileError, OptionError
from regard.text.bpe import Tokenizer
from regard.training.preparing import FILE, TARGET, found, prepare

from .corpora import labels, questions, settings, texts, translations


def prepared(task, chosen, out, *, begun=False, pretrained=None):
    """What was made, and what was said meanwhile: nothing where it was there already."""
    said = []
    return prepare(task, chosen, out, pretrained=pretrained, begun=begun, say=said.append), said


def test_it_is_made_once(tmp_path):
    chosen = settings("translation", translations(tmp_path / "numbers.tsv"))
    first, said = prepared("translation", chosen, tmp_path / "out")
    assert said[0] == "learning 320 pieces from the text"
    assert "none was cut or skipped" in said[2]
    again, said = prepared("translation", chosen, tmp_path / "out", begun=True)
    assert said == []
    assert again.origin == first.origin == found("translation", chosen, tmp_path / "out").origin
    assert len(first.learned) + len(first.held) == 256
    assert first.job.tokenizer.hash == again.job.tokenizer.hash


def test_what_is_too_long_is_told(tmp_path):
    chosen = settings("translation", translations(tmp_path / "numbers.tsv", longest=20), data={"longest": 8})
    _, said = prepared("translation", chosen, tmp_path / "out")
    assert any("were cut at 8 tokens in 'source'" in one for one in said)


def test_malformed_lines_are_told(tmp_path):
    path = labels(tmp_path / "labels.tsv")
    path.write_text(path.read_text() + "no label at all\n")
    _, said = prepared("classification", settings("classification", path), tmp_path / "out")
    assert any("malformed" in one and "258" in one for one in said)


def test_what_a_kill_left_is_made_anew(tmp_path):
    chosen = settings("classification", labels(tmp_path / "labels.tsv"))
    whole, _ = prepared("classification", chosen, tmp_path / "out")
    (tmp_path / "out" / "tokens" / FILE).unlink()
    (tmp_path / "out" / "tokens" / "learned" / "ids.bin").write_bytes(b"")
    again, said = prepared("classification", chosen, tmp_path / "out")
    assert said
    assert (again.origin, len(again.learned)) == (whole.origin, len(whole.learned))


def changed_file(path, chosen):
    content = path.read_bytes()
    path.write_bytes(content + b"a fine day\tgood\n")
    return chosen


@pytest.mark.parametrize(
    "change",
    [
        changed_file,
        lambda _, chosen: replace(chosen, data=replace(chosen.data, longest=20)),
        lambda _, chosen: replace(chosen, data=replace(chosen.data, held_out=0.2)),
        lambda _, chosen: replace(chosen, tokenizer=replace(chosen.tokenizer, size=300)),
        lambda _, chosen: replace(chosen, training=replace(chosen.training, seed=5)),
    ],
)  # fmt: skip
def test_other_text_is_no_text_to_go_on_with(tmp_path, change):
    path = labels(tmp_path / "labels.tsv")
    chosen = settings("classification", path)
    first, _ = prepared("classification", chosen, tmp_path / "out")
    other = change(path, chosen)
    with pytest.raises(FileError, match=r"begun with other text, another tokenizer or another seed.*--fresh"):
        prepared("classification", other, tmp_path / "out", begun=True)
    assert found("classification", chosen, tmp_path / "out").origin == first.origin  # what is there stays
    again, _ = prepared("classification", other, tmp_path / "out")
    assert again.origin != first.origin


def test_a_run_can_be_moved_with_its_text(tmp_path):
    path = labels(tmp_path / "labels.tsv")
    prepared("classification", settings("classification", path), tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.copy(path, tmp_path / "elsewhere")  # with another time of change
    shutil.move(tmp_path / "out", tmp_path / "elsewhere" / "out")
    chosen = settings("classification", moved)
    _, said = prepared("classification", chosen, tmp_path / "elsewhere" / "out", begun=True)
    assert said == []


def test_settings_of_the_loop_make_no_other_text(tmp_path):
    path = labels(tmp_path / "labels.tsv")
    prepared("classification", settings("classification", path), tmp_path / "out")
    _, said = prepared("classification", settings("classification", path, steps=99, tokens=999), tmp_path / "out")
    assert said == []


def test_a_tokenizer_that_is_given_is_taken(tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    chosen = settings("translation", path)
    for name in ("tokenizer.json", TARGET):
        Tokenizer.train([f"one two three {name}"], 280).save(tmp_path, name)
    shared = replace(chosen, tokenizer=replace(chosen.tokenizer, path=str(tmp_path)))
    first, said = prepared("translation", shared, tmp_path / "out")
    assert first.job.tokenizer.hash == Tokenizer.load(tmp_path).hash
    assert first.job.target is None
    assert not any("pieces" in one for one in said)
    two = replace(chosen, tokenizer=replace(chosen.tokenizer, path=str(tmp_path), shared=False))
    second, _ = prepared("translation", two, tmp_path / "out")  # which is not what was prepared before
    assert second.job.target.hash == Tokenizer.load(tmp_path, TARGET).hash
    Tokenizer.train(["another"], 270).save(tmp_path, TARGET)
    third, _ = prepared("translation", two, tmp_path / "out")
    assert third.origin != second.origin


def test_labels_are_those_of_the_text_learned_from(tmp_path):
    made, _ = prepared("classification", settings("classification", labels(tmp_path / "labels.tsv")), tmp_path / "out")
    assert made.job.labels == ("bad", "good")


def test_a_label_that_training_lacks_is_refused(tmp_path):
    path = labels(tmp_path / "labels.tsv")
    held = tmp_path / "held.tsv"
    held.write_text("text\tlabel\nthe day was awful\tugly\n")
    chosen = settings("classification", path, data={"held_out": [str(held)]})
    with pytest.raises(OptionError, match="'ugly' is none of those of the training data: 'bad', 'good'"):
        prepared("classification", chosen, tmp_path / "out")


def test_nothing_held_out_is_refused_before_anything_is_made(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=10)
    chosen = settings("classification", path, data={"held_out": 0.0001})
    with pytest.raises(OptionError, match=r"held_out is 0\.0001, and so none of the examples is held out"):
        prepared("classification", chosen, tmp_path / "out")


@pytest.mark.parametrize("part", ["paths", "held_out"])
def test_a_missing_file_is_named(tmp_path, part):
    path = labels(tmp_path / "labels.tsv")
    chosen = settings("classification", path, data={part: [str(tmp_path / "nothing.tsv")]})
    with pytest.raises(FileError, match=r"nothing\.tsv"):
        prepared("classification", chosen, tmp_path / "out")


def test_an_empty_file_is_named(tmp_path):
    path = labels(tmp_path / "labels.tsv")
    (tmp_path / "empty.tsv").write_text("")
    chosen = settings("classification", path, data={"held_out": [str(tmp_path / "empty.tsv")]})
    with pytest.raises(FileError, match=r"empty\.tsv"):
        prepared("classification", chosen, tmp_path / "out")


def test_questions_and_texts(tmp_path):
    chosen = settings("question-answering", questions(tmp_path / "questions.jsonl"))
    made, said = prepared("question-answering", chosen, tmp_path / "out")
    assert made.learned.fields == ("ids", "segment", "span")
    assert any("windows: " in one for one in said)
    shutil.rmtree(tmp_path / "out")
    made, _ = prepared("language-model", settings("language-model", texts(tmp_path / "t.txt")), tmp_path / "out")
    assert made.learned.fields == ("text",)


def test_everything_held_out_is_refused_before_anything_is_made(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=10)
    chosen = settings("classification", path, data={"held_out": 0.9999})
    with pytest.raises(OptionError, match=r"held_out is 0\.9999, and so all of the examples are held out.*lower"):
        prepared("classification", chosen, tmp_path / "out")


def test_malformed_examples_alone_are_told(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("text\tlabel\n" + "no label at all\n" * 5)
    with pytest.raises(OptionError, match=r"5 malformed ones were left out; the first: .*line 2"):
        prepared("classification", settings("classification", path), tmp_path / "out")


def test_a_shape_that_is_none_is_told_before_the_text_is_read(tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    chosen = settings("translation", path, model={"width": 33})
    said = []
    with pytest.raises(OptionError, match="do not divide a width of 33"):
        prepare("translation", chosen, tmp_path / "out", pretrained=None, begun=False, say=said.append)
    assert "making ids of the text" not in said


@pytest.mark.parametrize("told", ['{"labels": []}', '{"origin": "x", "labels": 5}', '{"origin": "x"}', "[]", ""])
def test_what_was_prepared_and_is_damaged_is_made_anew(tmp_path, told):
    chosen = settings("classification", labels(tmp_path / "labels.tsv"))
    first, _ = prepared("classification", chosen, tmp_path / "out")
    (tmp_path / "out" / "tokens" / "prepared.json").write_text(told)
    again, said = prepared("classification", chosen, tmp_path / "out", begun=True)
    assert again.origin == first.origin
    assert "making ids of the text" in said
