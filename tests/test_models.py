"""The model that ships with the package: its files, what it guesses, what its heads look at, and the recipe of it."""

import json
import lzma
import math
import sys
from pathlib import Path

import pytest
import torch

from regard import models
from regard.errors import OptionError
from regard.model.text_encoder import TextEncoder
from regard.text.bpe import Tokenizer

RECIPES = Path(__file__).parents[1] / "recipes"
GUESSES = {
    "The book was written [MASK] an unknown author.": "Ġby",
    "They had ten boats and lost two [MASK] them.": "Ġof",
    "Mary said that [MASK] was tired.": "Ġshe",
    "The small stream flows [MASK] the lake.": "Ġinto",
    "It rained all day, [MASK] we stayed at home.": "Ġand",
    "Neither the king [MASK] his brother could win the war.": "Ġnor",
    "He was older [MASK] his sister.": "Ġthan",
    "The house was built between 1910 [MASK] 1912.": "Ġand",
}
SENTENCE = "The old farmer walked slowly along the river because his horse was tired and it had begun to rain."


@pytest.fixture(scope="module")
def folder():
    return models.folder("encoder")


@pytest.fixture(scope="module")
def encoder(folder):
    return TextEncoder.load(folder)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return Tokenizer.load(folder)


@pytest.fixture
def recipes(monkeypatch):
    """The recipes' own modules, by name, as they see each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.syspath_prepend(str(RECIPES))
    before = set(sys.modules)
    yield __import__
    torch.set_num_threads(threads)
    for name in {path.stem for path in RECIPES.glob("*.py")} & (set(sys.modules) - before):
        del sys.modules[name]


def test_models_are_found_by_name(folder):
    assert "encoder" in models.names()
    assert (folder / "model.safetensors").is_file()
    for name in ("decoder", "", ".", "../model", "encoder/"):
        with pytest.raises(OptionError, match=r"no model .* ships with Regard; there is .*encoder"):
            models.folder(name)


def test_the_files_are_small_and_readable(folder):
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    expected = {"README.md", "config.json", "measured.json", "model.safetensors", "tokenizer.json", "training.json"}
    assert set(files) == expected
    assert sum(files.values()) <= 12_000_000


def test_model_and_tokenizer_belong_together(encoder, tokenizer):
    assert encoder.config.vocabulary == tokenizer.size
    assert encoder.config.tokenizer == tokenizer.hash


def test_obvious_words_are_guessed_better_than_by_frequency(folder, encoder, tokenizer):
    """By frequency the commonest piece of all is given its share of the text, and every other one less than that."""
    commonest = json.loads((folder / "measured.json").read_text())["scores"]["valid"]["frequency"]["accuracy"]
    surprises, found = [], 0
    for text, word in GUESSES.items():
        encoded = tokenizer.encode(text)
        with torch.no_grad():
            logs = encoder(torch.tensor([encoded.ids]))[0, encoded.ids.index(tokenizer.mask)].log_softmax(-1)
        surprises.append(-float(logs[tokenizer.id(word)]))
        found += tokenizer.id(word) in logs.topk(3).indices
    assert sum(surprises) / len(GUESSES) < -math.log(commonest) / 2
    assert found >= len(GUESSES) - 1, "among the first three guesses"


@pytest.mark.parametrize(("measure", "apart"), [("previous", -1), ("next", 1)])
def test_heads_look_where_the_card_says(recipes, folder, encoder, tokenizer, measure, apart):
    told = torch.tensor(json.loads((folder / "measured.json").read_text())["heads"]["trained"][measure])
    layer, head = divmod(int(told.argmax()), told.shape[1])
    ids = torch.tensor([tokenizer.encode(SENTENCE).ids])
    with torch.no_grad():
        weights = recipes("heads").maps(encoder, ids)[layer][0, head]
    looked = weights.diagonal(apart)[1:-1].mean()
    assert looked > 0.5
    assert looked == pytest.approx(float(told.max()), abs=0.2)


def test_a_long_text_is_read_and_a_longer_one_refused(encoder):
    longest = encoder.config.longest
    assert longest == 1024
    with pytest.raises(ValueError, match="1025 tokens and this model was made for at most 1024"):
        encoder(torch.full((1, longest + 1), 300))


def test_the_card_says_what_was_measured(recipes, folder):
    assert (folder / "README.md").read_text(encoding="utf-8") == recipes("card").card(folder)


def test_the_cards_program_runs(folder, capsys):
    program = (folder / "README.md").read_text(encoding="utf-8").split("```")[1].removeprefix("python\n")
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    assert "Ġhouse" in capsys.readouterr().out


def test_wikitext_reads_as_people_write(recipes, tmp_path):
    lines = [
        " = Title = \n",
        " \n",
        " = = Part = = \n",
        ' It \'s 12 @.@ 5 km ( 8 mi ) , well @-@ known . " So ! " he said . \n',
    ]
    with lzma.open(tmp_path / "a.xz", "wt", encoding="utf-8") as file:
        file.writelines(lines)
    assert recipes("wikitext").articles(tmp_path / "a.xz") == [[["It's 12.5 km (8 mi), well-known.", '"So!" he said.']]]


def test_what_counts_as_looking(recipes, tokenizer):
    encoded = tokenizer.encode("the cat, the Xylqz.")
    found = recipes("heads").targets(torch.tensor([encoded.ids]), tokenizer)
    first, mark, again = encoded.pieces.index("Ġthe"), encoded.pieces.index(","), encoded.pieces.index("Ġthe", 2)
    assert found["same"][0, first].nonzero().flatten().tolist() == [again]
    assert found["punctuation"][0, first].nonzero().flatten().tolist() == [mark, len(encoded.ids) - 2]
    word = list(range(again + 1, len(encoded.ids) - 2))
    assert len(word) > 1
    assert found["word"][0, word[0]].nonzero().flatten().tolist() == word[1:]
    assert not found["word"][0, first].any()


@pytest.fixture
def data(tmp_path):
    """Three texts as WikiText writes them, of sentences that say nothing new."""
    said = "The {} saw a {} near the river , and it ran to the old house . Nobody knew why the {} came back . "
    for name in ("train", "valid", "test"):
        with lzma.open(tmp_path / f"{name}.raw.xz", "wt", encoding="utf-8") as file:
            for title in ("One", "Two"):
                file.write(f" = {title} = \n {said.format('dog', 'cat', 'dog') * 20}\n {said.format(*'abc') * 5}\n")
    return tmp_path


@pytest.fixture
def cook(recipes, monkeypatch, data):
    """Runs the recipe, as the command line would."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["encoder.py", "--data", str(data), "--device", "cpu", "--small", *arguments])
        recipes("encoder").main()

    return run


def test_the_recipe_runs(cook, tmp_path, capsys):
    cook("--out", str(tmp_path / "model"), "--steps", "2")
    assert "2 batches of about 1,024 tokens" in capsys.readouterr().out
    model = TextEncoder.load(tmp_path / "model")
    assert model.config.vocabulary == Tokenizer.load(tmp_path / "model").size
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {path.name for path in models.folder("encoder").iterdir()}
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    cook("--out", str(tmp_path / "model"), "--report")
    assert (tmp_path / "model" / "README.md").read_text(encoding="utf-8") == card


def test_a_run_that_was_stopped_goes_on_as_if_it_never_was(cook, recipes, monkeypatch, tmp_path):
    recipe = recipes("encoder")
    whole, parts, state = tmp_path / "whole", tmp_path / "parts", tmp_path / "state.safetensors"
    cook("--out", str(whole), "--steps", "4")

    def stop(run, plan, loss, found, look=recipe.look):
        if run.step == 3:
            raise KeyboardInterrupt
        look(run, plan, loss, found)

    with monkeypatch.context() as patch:
        patch.setattr(recipe, "look", stop)
        with pytest.raises(KeyboardInterrupt):
            cook("--out", str(parts), "--steps", "4", "--resume", str(state))
    cook("--out", str(parts), "--steps", "4", "--resume", str(state))
    assert (parts / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert len(json.loads((parts / "training.json").read_text())["run"]["curve"]) == 4
