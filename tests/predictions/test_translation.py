"""Texts in, translations out: their order, their limits, and the attention behind them."""

import json
from dataclasses import replace

import pytest
import torch

from regard.errors import DtypeError, OptionError
from regard.model import TranslatorStepper
from regard.model.decoding import TOTAL, Limits, Sampling, greedy
from regard.predictions.translation import Translated, Translation

from .writers import TEXTS, tokenizer, translator

PIECES = tokenizer()


@pytest.fixture
def translation():
    return Translation(translator(PIECES), PIECES, "small")


def test_results_are_in_the_order_given_whatever_the_batch(translation):
    texts = [TEXTS[1], "a", TEXTS[3] * 2, "", TEXTS[2], "the cat"]
    together = translation(texts, width=3, n_best=2)
    for text, found in zip(texts, together, strict=True):
        (alone,) = translation([text], width=3, n_best=2)
        assert alone.text == found.text
        assert alone.score == pytest.approx(found.score, abs=1e-4)
        assert [one.text for one in alone.alternatives] == [one.text for one in found.alternatives]


def test_greedy_is_what_the_model_finds_likeliest(translation):
    (found,) = translation([TEXTS[0]], width=1, penalty=TOTAL)
    source = torch.tensor([[*PIECES.encode(TEXTS[0], ends=False).ids, PIECES.last]])
    stepper = TranslatorStepper(translation.model)
    limits = Limits(
        end=PIECES.last, longest=min(2 * source.shape[1] + 32, 48), forbidden=(PIECES.pad, PIECES.first, PIECES.mask)
    )
    (expected,) = greedy(stepper, stepper.begin(source), torch.tensor([PIECES.first]), limits)
    assert found == Translated(PIECES.decode(expected.tokens), expected.score, (), False, expected.ended)


def test_an_empty_text_has_an_empty_translation(translation):
    assert translation(["", " \n"]) == [Translated("", 0.0)] * 2
    assert translation([]) == []


def test_the_best_come_first(translation):
    (found,) = translation([TEXTS[0]], width=6, n_best=6)
    scores = [found.score, *(one.score for one in found.alternatives)]
    assert len(scores) > 2
    assert scores == sorted(scores, reverse=True)


def test_a_source_that_is_too_long_is_cut_and_said(translation):
    short, long = "a b", "a b c d " * 40
    assert [one.cut for one in translation([short, long], width=1)] == [False, True]
    fits = translation.tokenizer.encode(long, ends=False).ids[:47]  # and the end mark: 48
    assert translation._source([*fits, 5, 6]) == [*fits, PIECES.last]


def test_longest_stops_and_says_so(translation):
    unended = translation([TEXTS[0]], width=1, longest=2)[0]
    assert not unended.ended
    assert 0 < len(PIECES.encode(unended.text, ends=False).ids) <= 4


def test_what_was_stopped_can_be_looked_at(translation):
    longest = translation.model.config.longest
    stopped = " ".join(["cat"] * longest)
    assert len(PIECES.encode(stopped, ends=False).ids) == longest
    assert translation.look(TEXTS[0], stopped).mean(kind="decoder").weights().shape == (longest, longest)


def test_what_is_drawn_can_be_drawn_again(translation):
    def draw(seed):
        return [one.text for one in translation(TEXTS, sampling=Sampling(temperature=2.0), seed=seed)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_it_goes_through_json(translation):
    told = json.loads(json.dumps(translation([TEXTS[0]], n_best=2)[0].as_json()))
    assert told.keys() == {"text", "score", "alternatives", "cut", "ended"}
    assert told["alternatives"][0].keys() == {"text", "score"}


def test_its_attention_has_names_on_both_sides(translation):
    record = translation.look(TEXTS[2], "the cat")
    source = PIECES.encode(TEXTS[2], ends=False).pieces
    assert {layer.kind for layer in record.layers} == {"encoder", "decoder", "cross"}
    cross = record.of_kind("cross")[0]
    assert cross.heads[0].shape == (1 + len(PIECES.encode("the cat", ends=False).ids), len(source) + 1)
    assert cross.queries[0].texts[:2] == ("[CLS]", " the")
    assert cross.keys[0].texts[-1] == "[SEP]"
    assert record.of_kind("encoder")[0].queries[0].texts == cross.keys[0].texts
    assert record.of_kind("decoder")[0].keys[0].texts == cross.queries[0].texts


def test_by_itself_it_looks_at_what_it_writes(translation):
    (found,) = translation([TEXTS[0]])
    read = translation.look(TEXTS[0]).of_kind("decoder")[0].queries[0]
    assert read.generated == 1
    written = translation._both(TEXTS[0], None)[1]
    assert PIECES.decode(written) == found.text
    assert len(read) == len(written)
    aligned = translation.alignment(TEXTS[0])
    assert aligned.target.texts[:-1] == read.texts[1:]
    assert (aligned.target.texts[-1] == "[SEP]") == found.ended


def test_an_alignment_has_a_row_for_each_token_that_is_written(translation):
    found = translation.alignment(TEXTS[2], "the cat")
    cross = translation.look(TEXTS[2], "the cat").of_kind("cross")
    assert (found.target.texts[0], found.target.texts[-1]) == (" the", "[SEP]")
    assert found.source == cross[0].keys[0]
    assert found.weights.shape == (len(found.target), len(found.source))
    expected = sum(layer.weights().mean(axis=0) for layer in cross) / len(cross)
    assert found.weights == pytest.approx(expected, abs=1e-5)


def test_words_that_were_looked_at_come_with_the_translations(translation):
    texts = [TEXTS[0], " ", TEXTS[2]]
    found = translation(texts, align=True)
    assert [one.alignment is None for one in translation(texts)] == [True] * 3
    assert [replace(one, alignment=None) for one in found] == translation(texts)
    assert found[1].alignment == ()
    assert found[0].alignment == translation.alignment(TEXTS[0]).links()
    told = json.loads(json.dumps(found[0].as_json()))
    assert told["alignment"] == [list(link) for link in found[0].alignment]


def test_two_vocabularies():
    other = tokenizer(280, ["der hund lief", "die katze schlief"])
    model = translator(PIECES, target_vocabulary=other.size, target_tokenizer=other.hash)
    translation = Translation(model, PIECES, "two", target_tokenizer=other)
    (found,) = translation([TEXTS[0]], width=2)
    assert found.text
    cross = translation.look(TEXTS[0], "die katze").of_kind("cross")[0]
    assert cross.queries[0].texts[1] == " die"
    with pytest.raises(OptionError, match="two's target is not the one"):
        Translation(model, PIECES, "two", target_tokenizer=PIECES)
    with pytest.raises(OptionError, match="two has two vocabularies"):
        Translation(model, PIECES, "two")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda translate: translate("the cat"), DtypeError, "give a list"),
        (lambda translate: translate(["a", 3]), DtypeError, "text 2 is a int"),
        (lambda translate: translate(["a"], width=2, n_best=3), OptionError, "n_best is 3 and width is 2"),
        (lambda translate: translate(["a"], width=1, n_best=3), OptionError, "n_best is 3"),
        (lambda translate: translate(["a"], n_best=2, sampling=Sampling()), OptionError, "sampling is given"),
        (lambda translate: translate(["a"], longest=0), OptionError, "longest is 0"),
        (lambda translate: translate(["a"], sampling=Sampling(), seed=2**70), OptionError, "seed is"),
        (lambda translate: translate(["a"], sampling=Sampling(), seed=-1), OptionError, "seed is -1"),
        (lambda translate: translate.look(" "), OptionError, "nothing to look at"),
        (lambda translate: translate.look("a", "b c " * 40), OptionError, "writes at most 47"),
    ],
)
def test_wrong_input_is_told(translation, call, error, says):
    with pytest.raises(error, match=says):
        call(translation)


def test_a_foreign_tokenizer_is_refused():
    with pytest.raises(OptionError, match="not the one that its model was trained with"):
        Translation(translator(PIECES), tokenizer(280), "small")


def test_the_model_is_left_as_it_was(translation):
    translation.model.train()
    translation(["the cat"], width=1)
    assert translation.model.training
    assert torch.is_grad_enabled()


def test_eight_bits_give_as_many_translations_in_the_same_order(translation):
    """That they are mostly the same is tested where a model has learned something (tests/model/test_int8.py)."""
    texts = [TEXTS[1], "", TEXTS[2]]
    quick = translation.quick()
    found = quick(texts, width=2, n_best=2, longest=5)
    assert [bool(one.alternatives) for one in found] == [True, False, True]
    assert found[0].text == quick(texts[:1], width=2, n_best=2, longest=5)[0].text
    assert quick(texts, width=1, longest=5)[1].text == ""
