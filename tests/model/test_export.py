"""The export to CTranslate2: it answers as the model does, whatever the model's options."""

import sys
from dataclasses import replace

import pytest
import torch

from regard.errors import FileError, MissingExtra, OptionError, ShapeError
from regard.model import Translator, TranslatorConfig, TranslatorStepper
from regard.model.decoding import Limits, beam, greedy
from regard.model.export.ctranslate2 import export

ctranslate2 = pytest.importorskip("ctranslate2")

V, S, LONGEST = 60, 9, 15
PIECES = ["[PAD]", "[CLS]", "[SEP]", *(f"t{number}" for number in range(3, V))]
PAD, START, END = 0, 1, 2
SMALL = TranslatorConfig(vocabulary=V, width=32, heads=4, depth=3, decoder_depth=2, hidden=64, dropout=0.0, longest=40)
OPTIONS = {
    "rotary": {"rotary_base": 500.0},
    "learned": {"positions": "learned", "activation": "gelu"},
    "vaswani": {"positions": "sinusoidal", "norm_first": False},
    "modern": {"norm": "rms", "activation": "swiglu", "bias": False, "decoder_hidden": 16},
    "few key heads": {"key_heads": 2},
    "one key head": {"key_heads": 1, "bias": False},
    "two vocabularies": {"target_vocabulary": 50},
    "untied": {"tied": False},
}


def made(**options):
    """A model whose guesses are far apart, and none of whose biases and norms could be left out unseen."""
    model = Translator(replace(SMALL, **options)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(1 if "embedding" in name or name == "output.weight" else 4)
            else:
                weight.add_(0.2 * torch.randn_like(weight))
    return model


def sources():
    lengths = torch.tensor([S, 4, S, 2, 6])
    ids = torch.randint(3, 50, (len(lengths), S))
    mask = torch.arange(S) < lengths[:, None]
    words = [[PIECES[number] for number in row[seen]] for row, seen in zip(ids.numpy(), mask.numpy(), strict=True)]
    return ids, mask, words


def exported(model, folder, **options):
    two = model.config.target_vocabulary
    export(model, folder, PIECES, None if two is None else PIECES[:two], **options)
    return ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_greedy_output_and_scores(name, tmp_path):
    model = made(**OPTIONS[name])
    ids, mask, words = sources()
    stepper = TranslatorStepper(model)
    wanted = greedy(stepper, stepper.begin(ids, mask), torch.full((len(ids),), START), Limits(end=END, longest=LONGEST))
    engine = exported(model, tmp_path / "there")
    found = engine.translate_batch(
        words, beam_size=1, max_decoding_length=LONGEST, min_decoding_length=0, return_scores=True
    )
    assert [one.hypotheses[0] for one in found] == [[PIECES[token] for token in text.tokens] for text in wanted]
    means = [text.score / (len(text.tokens) + text.ended) for text in wanted]
    assert [one.scores[0] for one in found] == pytest.approx(means, abs=1e-3)
    assert len({text.tokens for text in wanted}) > 1


def test_the_same_by_beam(tmp_path):
    model = made()
    ids, mask, words = sources()
    stepper, limits = TranslatorStepper(model), Limits(end=None, longest=LONGEST, forbidden=(END,))
    wanted = beam(stepper, stepper.begin(ids, mask), torch.full((len(ids),), START), limits)
    found = exported(model, tmp_path / "there").translate_batch(
        words, beam_size=4, max_decoding_length=LONGEST, min_decoding_length=LONGEST
    )
    assert [one.hypotheses[0] for one in found] == [[PIECES[token] for token in texts[0].tokens] for texts in wanted]


def test_in_8_bits_it_is_smaller(tmp_path):
    model = made()
    for name in ("float32", "int8"):
        found = exported(model, tmp_path / name, quantisation=name).translate_batch([["t3"]], max_decoding_length=3)
        assert found[0].hypotheses[0]
    large, small = ((tmp_path / name / "model.bin").stat().st_size for name in ("float32", "int8"))
    assert small < large / 2


def test_what_does_not_fit_is_told_before_anything_is_written(tmp_path):
    model, folder = made(), tmp_path / "there"
    with pytest.raises(ShapeError, match="tokens has 59 pieces and the model 60"):
        export(model, folder, PIECES[:-1])
    with pytest.raises(OptionError, match="the same piece twice"):
        export(model, folder, [*PIECES[:-1], "t3"])
    with pytest.raises(OptionError, match="one vocabulary for both"):
        export(model, folder, PIECES, PIECES)
    with pytest.raises(OptionError, match="a vocabulary for each text; give tokens and target_tokens"):
        export(made(target_vocabulary=50), folder, PIECES)
    with pytest.raises(OptionError, match=r"'<s>' is no piece"):
        export(model, folder, PIECES, start="<s>")
    with pytest.raises(OptionError, match="quantisation is 'int4'"):
        export(model, folder, PIECES, quantisation="int4")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(FileError, match="is there already, and not empty"):
        export(made(), tmp_path, PIECES)
    with pytest.raises(FileError, match="is there already, and not empty"):
        export(made(), tmp_path / "note.txt", PIECES)
    assert [file.name for file in tmp_path.iterdir()] == ["note.txt"]


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtra, match=r"regard\[export\]"):
        export(made(), tmp_path / "there", PIECES)
