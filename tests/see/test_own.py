"""The model that ships with the package, and folders of its kind."""

import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("tokenizers")

import regard
from regard import models
from regard.errors import FileError, OptionError
from regard.model import (
    Answerer,
    Classifier,
    LanguageModel,
    LanguageModelConfig,
    Reader,
    ReaderConfig,
    TextEncoder,
    TextEncoderConfig,
    Translator,
    TranslatorConfig,
)
from regard.see import load

TEXT = "The cat sat on the mat"


@pytest.fixture(scope="module")
def encoder():
    return load()


def test_what_is_seen_is_what_the_model_does(encoder):
    record = encoder.look(TEXT).record
    ids = torch.tensor([encoder.tokenizer.encode(TEXT).ids])
    with torch.no_grad(), regard.watch(encoder.model) as again:
        encoder.model(ids)
    assert record.tokens == ("[CLS]", " The", " cat", " sat", " on", " the", " mat", "[SEP]")
    assert len(record.layers) == len(again.layers) == encoder.model.config.depth
    for layer, other in zip(record.layers, again.layers, strict=True):
        np.testing.assert_array_equal(layer.weights(), other.weights())
        np.testing.assert_allclose(layer.weights().sum(-1), 1, atol=1e-5)


def test_a_pair_is_one_text_behind_the_other(encoder):
    tokens = encoder.look("The cat", pair="a mat").record.layers[0].queries[0]
    assert tokens.texts == ("[CLS]", " The", " cat", "[SEP]", " a", " mat", "[SEP]")
    assert tokens.segments == (0, 0, 0, 0, 1, 1, 1)


@pytest.mark.parametrize("text", ["a", "\0", "\x1b[31m", "👨‍👩‍👧‍👦 🇩🇪", "مرحبا بالعالم", "\ud800 half", "猫坐在垫子上"])
def test_any_text_can_be_read(encoder, text):
    layer = encoder.look(text).record.layers[-1]
    assert layer.map.shape[1] == len(layer.queries[0]) > 2


def test_what_it_cannot_do_is_said(encoder):
    with pytest.raises(OptionError, match="encoder only reads"):
        encoder.look(TEXT, generate=3)
    with pytest.raises(OptionError, match="6,003 tokens, and encoder takes at most 1,024"):
        encoder.look("the cat " * 3000)


def test_a_folder_of_its_kind(tmp_path):
    shutil.copytree(models.folder("encoder"), tmp_path / "mine")
    found = load(str(tmp_path / "mine"))
    assert found.look("a").record.model == load().look("a").record.model
    (tmp_path / "mine" / "tokenizer.json").write_text("{}")
    with pytest.raises(FileError, match=r"tokenizer\.json"):
        load(str(tmp_path / "mine"))


@pytest.fixture
def kept(encoder, tmp_path):
    """Keeps a model in a folder with the tokenizer that comes with the package, and gives its name."""

    def keep(model):
        model.save(tmp_path)
        shutil.copy(models.folder("encoder") / "tokenizer.json", tmp_path)
        return str(tmp_path)

    return keep


SMALL = {"vocabulary": 7168, "width": 16, "heads": 2, "depth": 1, "hidden": 16, "longest": 32}


def test_a_classifier_is_seen_reading(kept):
    name = kept(Classifier.of(Reader(ReaderConfig(**SMALL)), labels=("a", "b")))
    assert load(name).look(TEXT).record.tokens[1:3] == (" The", " cat")
    assert load(name).look("The", pair="cat").record.layers[0].queries[0].segments == (0, 0, 0, 1, 1)
    with pytest.raises(OptionError, match="only reads"):
        load(name).look(TEXT, generate=3)
    with pytest.raises(OptionError, match="takes at most 32"):
        load(name).look(TEXT * 10)


def test_an_answerer_is_seen_with_question_and_context(kept):
    model = Answerer.of(Reader(ReaderConfig(**SMALL))).eval()
    torch.nn.init.normal_(model.reader.segment_embedding.weight)
    subject = load(kept(model))
    record = subject.look("Who sat?", pair=TEXT).record
    tokens = record.layers[0].queries[0]
    first, second = (subject.tokenizer.encode(text).ids for text in ("Who sat?", TEXT))
    assert tokens.segments == (0,) * len(first) + (1,) * (len(second) - 1)
    with torch.no_grad(), regard.watch(model) as again:
        model(torch.tensor([[*first, *second[1:]]]), None, torch.tensor([tokens.segments]))
    np.testing.assert_array_equal(record.layers[0].weights(), again.layers[0].weights())
    with pytest.raises(OptionError, match="give the question as the text and --pair its context"):
        subject.look("Who sat?")


def test_segments_reach_an_encoder_that_has_them(kept):
    model = TextEncoder(TextEncoderConfig(**SMALL, segments=2))
    torch.nn.init.normal_(model.segment_embedding.weight)
    subject = load(kept(model))
    record = subject.look("The", pair="cat").record
    ids = [*subject.tokenizer.encode("The").ids, *subject.tokenizer.encode("cat").ids[1:]]
    with torch.no_grad(), regard.watch(model.eval()) as again:
        model(torch.tensor([ids]), segments=torch.tensor([[0, 0, 0, 1, 1]]))
    np.testing.assert_array_equal(record.layers[0].weights(), again.layers[0].weights())


def test_writers_are_seen_writing(kept):
    subject = load(kept(LanguageModel(LanguageModelConfig(**SMALL))))
    assert subject.look(TEXT).wrote is None
    seen = subject.look("The cat", generate=3)
    assert seen.record.layers[0].queries[0].generated == 3
    assert seen.wrote is not None
    subject = load(kept(Translator(TranslatorConfig(**SMALL, decoder_depth=1))))
    assert {layer.kind for layer in subject.look("The cat").record.layers} == {"encoder", "decoder", "cross"}
    with pytest.raises(OptionError, match="leave --generate out"):
        subject.look(TEXT, generate=3)
    with pytest.raises(OptionError, match="takes one text; leave --pair out"):
        subject.look(TEXT, pair="a")


def test_a_name_is_needed():
    with pytest.raises(OptionError, match="no name"):
        load("  ")
