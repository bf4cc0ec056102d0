"""Whole trainings, from text to a folder that is used: each task learns, and a run goes on, or is refused."""

import json
import math
import shutil
from dataclasses import replace

import pytest

from regard.errors import FileError, OptionError, RegardError
from regard.model.saved import kind_of
from regard.predictions import load
from regard.training.evaluation import evaluate
from regard.training.run import train
from regard.training.settings import DataSettings

from .corpora import CORPORA, NUMBERS, labels, settings, texts, translations
from .small import Silent, lines, losses, steps

ENDINGS = {"question-answering": "jsonl", "language-model": "txt", "masked-language-model": "txt"}
FILES = {"model.safetensors", "config.json", "tokenizer.json", "README.md", "run.toml", "log.jsonl"}
# How well each must do on text it has not seen, and how it is asked: chance is 1/7 or less, of labels 1/2.
LEARNED = {
    "translation": (0.6, lambda model: model(["six two"])[0].text, "neun zwei"),
    "summarisation": (0.95, lambda model: model(["four day was so we"])[0].text, "four"),
    "classification": (0.95, lambda model: model(["so lovely the day"])[0].label, "good"),
    "language-model": (0.5, lambda model: model(["two three"], longest=3)[0].text.split()[:2], ["four", "five"]),
    "masked-language-model": (
        0.5, lambda model: model(["two three [MASK] five six"])[0].gaps[0].guesses[0].text.strip(), "four"
    ),
    "question-answering": (
        0.9, lambda model: model([("which number?", "we were here five and the day")])[0].text, "five"
    ),
}  # fmt: skip
MORE = {"translation": {"tokens": 1024, "steps": 150, "learning_rate": 5e-3}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The outcome of a task's training, each trained once."""
    found = {}

    def trained(task):
        if task not in found:
            folder = tmp_path_factory.mktemp(task)
            path = CORPORA[task](folder / f"corpus.{ENDINGS.get(task, 'tsv')}", count=600)
            chosen = {"steps": 80, "evaluate_every": 40, "save_every": 1000, **MORE.get(task, {})}
            found[task] = train(task, settings(task, path, **chosen), folder / "out")
        return found[task]

    return trained


@pytest.mark.parametrize("task", CORPORA)
def test_each_task_learns_and_is_used(trained, task):
    outcome = trained(task)
    enough, ask, expected = LEARNED[task]
    assert outcome.best["accuracy"] > enough
    assert (outcome.step, outcome.stopped) == (outcome.steps, "")
    assert {path.name for path in outcome.folder.iterdir()} == FILES | {"tokens", "checkpoints"}
    assert ask(load(outcome.folder)) == expected
    assert steps(outcome.folder) == list(range(1, outcome.steps + 1))
    best = [line for line in lines(outcome.folder) if line["kind"] == "held-out" and line["best"]][-1]
    assert best["loss"] == outcome.best["loss"]


def test_a_trained_run_has_nothing_left_to_do(trained):
    outcome = trained("classification")
    before = {path.name: path.read_bytes() for path in outcome.folder.iterdir() if path.is_file()}
    told = []
    path = outcome.folder.parent / "corpus.tsv"
    again = train(
        "classification", settings("classification", path, steps=80, evaluate_every=40, save_every=1000),
        outcome.folder, reporters=[Silent(step=told.append)],
    )  # fmt: skip
    assert (again.step, told) == (80, [])
    assert again.best == outcome.best
    assert {path.name: path.read_bytes() for path in outcome.folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("task", ["classification", "question-answering"])
def test_a_masked_language_model_is_a_beginning(trained, tmp_path, task):
    start = trained("masked-language-model").folder
    path = CORPORA[task](tmp_path / f"corpus.{ENDINGS.get(task, 'tsv')}")
    chosen = settings(task, path, steps=60, evaluate_every=60)
    outcome = train(task, chosen, tmp_path / "out", pretrained=start)
    assert outcome.best["accuracy"] > 0.8
    assert (outcome.folder / "tokenizer.json").read_bytes() == (start / "tokenizer.json").read_bytes()
    assert load(outcome.folder)
    again = train(task, settings(task, path, steps=62, evaluate_every=60), tmp_path / "out", pretrained=start)
    assert again.step == 62


def test_a_model_goes_on_with_other_text(trained, tmp_path):
    start = trained("language-model")
    path = texts(tmp_path / "other.txt", seed=5)
    outcome = train(
        "language-model", settings("language-model", path, steps=2), tmp_path / "out", pretrained=start.folder
    )
    assert losses(outcome.folder)[0] < losses(start.folder)[0] - 1


def test_a_beginning_that_reads_less_is_told_before_anything_is_made(trained, tmp_path):
    path = labels(tmp_path / "labels.tsv")
    chosen = settings("classification", path, data={"longest": 100})
    start = trained("masked-language-model").folder
    with pytest.raises(
        OptionError, match=r"longest is 100, and the model of .* 24 tokens at most; say --set longest=24"
    ):
        train("classification", chosen, tmp_path / "out", pretrained=start)
    again = trained("classification").folder  # whose config has the encoder's within it
    with pytest.raises(OptionError, match=r"24 tokens at most"):
        train("classification", chosen, tmp_path / "out", pretrained=again)


def test_a_beginning_of_another_kind_is_refused(trained, tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    with pytest.raises(RegardError, match=r"regard\.Classifier"):
        train(
            "translation", settings("translation", path), tmp_path / "out", pretrained=trained("classification").folder
        )


def test_two_vocabularies(tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    chosen = settings("translation", path, steps=4, evaluate_every=4)
    chosen = replace(chosen, tokenizer=replace(chosen.tokenizer, shared=False, size=300))
    outcome = train("translation", chosen, tmp_path / "out")
    assert (outcome.folder / "target-tokenizer.json").exists()
    model = load(outcome.folder)
    assert model.tokenizer.hash != model.target_tokenizer.hash
    assert isinstance(model(["one two"])[0].text, str)
    more = replace(chosen, training=replace(chosen.training, steps=6))
    assert train("translation", more, tmp_path / "out").step == 6
    # and as a beginning, with both
    assert train("translation", chosen, tmp_path / "more", pretrained=outcome.folder).step == 4
    assert (tmp_path / "more" / "target-tokenizer.json").exists()


def begun(tmp_path, **training):
    path = labels(tmp_path / "labels.tsv", count=64)
    chosen = settings("classification", path, **{"steps": 4, "evaluate_every": 100, **training})
    return path, chosen, train("classification", chosen, tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"betas": (0.9, 0.95)}, "betas was"), ({"tokens": 512}, "tokens was 256 and is 512"),
        ({"accumulate": 2}, "accumulate was 1 and is 2"), ({"seed": 3}, "another seed"),
    ],
)  # fmt: skip
def test_other_settings_are_refused_by_name(tmp_path, changes, named):
    _, chosen, _ = begun(tmp_path)
    kept = (tmp_path / "out" / "run.toml").read_text()
    other = replace(chosen, training=replace(chosen.training, steps=8, **changes))
    with pytest.raises(FileError, match=named):
        train("classification", other, tmp_path / "out")
    assert (tmp_path / "out" / "run.toml").read_text() == kept  # which still tells of the run that is there


def test_another_shape_is_refused_by_name(tmp_path):
    path, _, _ = begun(tmp_path)
    with pytest.raises(FileError, match=r"model\.reader was .*--fresh"):
        train("classification", settings("classification", path, model={"width": 16}, steps=8), tmp_path / "out")


@pytest.mark.parametrize(
    "changes", [{"learning_rate": 1e-3}, {"warmup": 3}, {"clip": 0.5}, {"save_every": 1, "keep": 1}]
)
def test_what_helps_after_nan_may_be_changed(tmp_path, changes):
    _, chosen, _ = begun(tmp_path)
    outcome = train(
        "classification", replace(chosen, training=replace(chosen.training, steps=6, **changes)), tmp_path / "out"
    )
    assert steps(outcome.folder) == [1, 2, 3, 4, 5, 6]


def test_other_text_is_refused(tmp_path):
    path, chosen, _ = begun(tmp_path)
    labels(path, count=65)
    with pytest.raises(FileError, match=r"begun with other text.*--fresh"):
        train("classification", chosen, tmp_path / "out")
    assert train("classification", chosen, tmp_path / "out", fresh=True).step == 4


def test_fresh_begins_anew(tmp_path):
    _, chosen, outcome = begun(tmp_path)
    other = replace(chosen, training=replace(chosen.training, seed=1, steps=3))
    train("classification", other, outcome.folder, fresh=True)
    assert steps(outcome.folder) == [1, 2, 3]
    assert [path.name for path in (outcome.folder / "checkpoints").iterdir()] == ["step-000000003"]


def test_another_task_in_the_same_folder_is_refused(tmp_path):
    begun(tmp_path)
    with pytest.raises(FileError, match="--fresh"):
        train("language-model", settings("language-model", texts(tmp_path / "t.txt")), tmp_path / "out")


def test_epochs(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=64)
    chosen = settings("classification", path, steps=None, epochs=2, tokens=128, evaluate_every=100)
    outcome = train("classification", chosen, tmp_path / "out")
    assert 2 * 64 * 4 / 128 < outcome.steps < 2 * 64 * 14 / 128
    # As many batches as the first epoch has, twice: the second may have one more or less.
    assert [line["epoch"] for line in lines(outcome.folder) if line["kind"] == "step"][-1] in {1, 2}


def test_minutes_and_what_comes_of_the_next_call(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=64)
    chosen = settings("classification", path, steps=5, model={"dropout": 0.3}, ema=0.9)
    stopped = train("classification", chosen, tmp_path / "parts", minutes=0)
    assert (stopped.step, stopped.stopped) == (1, "0 minutes are over")
    while stopped.stopped:
        stopped = train("classification", chosen, tmp_path / "parts", minutes=0)
    train("classification", chosen, tmp_path / "whole")
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert (tmp_path / "parts" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_half_precision(tmp_path):
    path = labels(tmp_path / "labels.tsv")
    outcome = train(
        "classification", settings("classification", path, steps=60, precision="bfloat16"), tmp_path / "out"
    )  # fmt: skip
    assert outcome.best["accuracy"] > 0.9
    assert kind_of(outcome.folder) == "regard.Classifier"


def test_next_sentences(tmp_path):
    path = texts(tmp_path / "texts.txt")
    chosen = settings("masked-language-model", path, model={"next_sentence": True}, steps=6, accumulate=2)
    outcome = train("masked-language-model", chosen, tmp_path / "out")
    told = outcome.best
    assert told.keys() == {"loss", "masked loss", "follows loss", "masked accuracy", "follows accuracy"}
    assert told["loss"] == pytest.approx(told["masked loss"] + told["follows loss"])
    numbers = evaluate(tmp_path / "out", DataSettings(paths=(str(path),))).numbers
    assert numbers["perplexity"] == pytest.approx(math.exp(numbers["masked loss"]))  # of the hidden words alone
    assert load(outcome.folder)


def test_the_state_of_a_run_is_told(tmp_path):
    told = []
    reporter = Silent(say=told.append, begin=lambda entry: told.append(entry["steps"]), end=told.append)
    path = labels(tmp_path / "labels.tsv", count=64)
    train("classification", settings("classification", path, steps=2), tmp_path / "out", reporters=[reporter])
    assert told[0].startswith("learning 320 pieces")
    assert 2 in told
    assert told[-1]["stopped"] == ""


def test_words_of_the_language_are_all_learned(trained):
    """The tokenizer of the folder knows the text."""
    model = load(trained("translation").folder)
    assert all(model.tokenizer.decode(model.tokenizer.ids([word])[0]).strip() == word for word in NUMBERS)


def test_the_card_tells_how_it_was_made(trained):
    outcome = trained("classification")
    text = (outcome.folder / "README.md").read_text()
    assert "regard classify" in text
    assert f"| accuracy | {outcome.best['accuracy']:.4g} |" in text
    config = json.loads((outcome.folder / "config.json").read_text())
    assert config["labels"] == ["bad", "good"]


def test_labels_that_training_lacks_are_refused(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=64)
    (tmp_path / "held.tsv").write_text("text\tlabel\nthe day\tugly\n")
    chosen = settings("classification", path, data={"held_out": [str(tmp_path / "held.tsv")]})
    with pytest.raises(OptionError, match=r"'ugly' is none of those of the training data: 'bad', 'good'"):
        train("classification", chosen, tmp_path / "out")


@pytest.mark.parametrize("task", CORPORA)
def test_a_longest_that_no_padding_divides(tmp_path, task):
    path = CORPORA[task](tmp_path / f"corpus.{ENDINGS.get(task, 'tsv')}")
    chosen = settings(task, path, steps=2, evaluate_every=2, data={"longest": 19})
    assert train(task, chosen, tmp_path / "out").step == 2


def test_one_process_trains_in_a_folder_at_a_time(tmp_path):
    _, chosen, _ = begun(tmp_path)

    class Second(Silent):
        def begin(self, told):
            with pytest.raises(FileError, match=r"another process is training in .*out"):
                train("classification", more, tmp_path / "out")

    more = replace(chosen, training=replace(chosen.training, steps=6))
    assert train("classification", more, tmp_path / "out", reporters=[Second()]).step == 6
    assert steps(tmp_path / "out") == [1, 2, 3, 4, 5, 6]


def test_a_model_of_others_is_not_written_over(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=64)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "config.json").write_text('{"model_type": "bert"}')
    for fresh in (False, True):
        with pytest.raises(FileError, match="has a model that was not trained there"):
            train("classification", settings("classification", path), tmp_path / "out", fresh=fresh)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["config.json"]


def test_a_folder_that_is_a_file_is_told(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=64)
    with pytest.raises(FileError, match=r"cannot make the folder .*: there is a file of that name"):
        train("classification", settings("classification", path), path)


def test_text_that_was_lost_is_made_anew_and_the_run_goes_on(tmp_path):
    _, chosen, _ = begun(tmp_path)
    shutil.rmtree(tmp_path / "out" / "tokens")
    left = tmp_path / "out" / ".regard-0123456789abcdef.part"  # of a file, by a kill
    left.write_bytes(b"half")
    more = replace(chosen, training=replace(chosen.training, steps=6))
    assert train("classification", more, tmp_path / "out").step == 6
    assert steps(tmp_path / "out") == [1, 2, 3, 4, 5, 6]
    assert not left.exists()


def test_a_beginning_with_a_foreign_tokenizer_is_refused(trained, tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    shutil.copytree(trained("translation").folder, tmp_path / "start")
    shutil.copy(trained("language-model").folder / "tokenizer.json", tmp_path / "start")
    with pytest.raises(OptionError, match="not the one that its model was trained with"):
        train("translation", settings("translation", path), tmp_path / "out", pretrained=tmp_path / "start")


def test_a_beginning_that_lost_one_of_two_tokenizers_is_refused(tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    chosen = settings("translation", path, steps=2, evaluate_every=2)
    two = replace(chosen, tokenizer=replace(chosen.tokenizer, shared=False, size=300))
    start = train("translation", two, tmp_path / "start").folder
    (start / "target-tokenizer.json").unlink()
    with pytest.raises(OptionError, match="has a vocabulary for each text; its folder must have as many tokenizers"):
        train("translation", chosen, tmp_path / "out", pretrained=start)


def test_a_state_that_was_changed_is_told(tmp_path):
    _, chosen, outcome = begun(tmp_path)
    (state,) = (outcome.folder / "checkpoints").glob("*/state.json")
    told = json.loads(state.read_text())
    progress = told["progress"]
    for changed in (
        {"progress": None}, {"progress": {}}, {"identity": None}, {"progress": {**progress, "step": 3}},
        {"progress": {**progress, "place": [0, 0]}}, {"progress": {**progress, "best": "x"}},
        {"progress": {**progress, "watch": None}}, {"progress": {**progress, "seconds": None}},
    ):  # fmt: skip
        state.write_text(json.dumps({**told, **changed}))
        with pytest.raises(FileError, match=r"its state\.json cannot be read"):
            train("classification", replace(chosen, training=replace(chosen.training, steps=6)), outcome.folder)
