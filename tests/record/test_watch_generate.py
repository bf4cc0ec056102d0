"""Watching generate(): however a text came about, its maps are those of reading it once through."""

import pytest
import torch

import regard
from regard.errors import WatchError
from regard.formula.masks.places import Causal, Ranges

pytest.importorskip("transformers")

from .models import inputs_of, make

WAYS = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True},
    "beams": {"do_sample": False, "num_beams": 3},
    "several beams": {"do_sample": False, "num_beams": 4, "num_return_sequences": 2},
    "several samples": {"do_sample": True, "num_return_sequences": 2},
    "no cache": {"do_sample": False, "use_cache": False},
    "static": {"do_sample": False, "cache_implementation": "static", "disable_compile": True},
}
NEW = 6  # tokens


def generated(model, inputs, **options):
    """What generate() returns and the record of it, proved to be what it returns when nobody watches."""
    options = {"max_new_tokens": NEW, **options}
    torch.manual_seed(1)
    plain = model.generate(**inputs, **options)
    torch.manual_seed(1)
    with regard.watch(model) as record:
        texts = model.generate(**inputs, **options)
    assert torch.equal(texts, plain)
    return texts, record


def read_through(model, text, source=None, mask=None):
    """What eager attention shows of a text that is read at once."""
    was = model.config._attn_implementation
    model.set_attn_implementation("eager")
    inputs = {"input_ids": text} if source is None else {"input_ids": source, "decoder_input_ids": text}
    if mask is not None:
        inputs["attention_mask"] = mask
    if mask is not None and source is None:
        inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    model.set_attn_implementation(was)
    return outputs


def assert_decoder(model, record, texts, given, mask=None):
    """Each text's map against that of reading it; the last token was never fed back, so it has no row."""
    assert record.items == len(texts)
    for item, text in enumerate(texts):
        own = record.item(item)
        length = own.layers[0].shape[1]
        whole = None
        if mask is not None:
            whole = torch.ones(1, length, dtype=torch.long)
            whole[:, : mask.shape[1]] = mask[item * given // len(texts)]
        seen = slice(None) if whole is None else whole[0].bool()
        maps = read_through(model, text[None, :length], mask=whole).attentions
        for layer, expected in zip(own.layers, maps, strict=True):
            torch.testing.assert_close(layer.weights()[:, seen], expected[0][:, seen], rtol=0, atol=1e-5)


@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_decoder(name, way, padding):
    model, inputs = make(name), inputs_of(name, padding)
    texts, record = generated(model, inputs, **WAYS[way])
    assert_decoder(model, record, texts, 2, inputs.get("attention_mask"))
    assert record.layers[0].shape[1] in (8 + NEW, texts.shape[1] - 1)


@pytest.mark.parametrize("way", ["greedy", "beams", "static", "no cache"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_a_padded_decoder_in_eager(name, way):
    """Rows of padding look at all keys alike there, those included that a static cache has not filled yet."""
    model, inputs = make(name, "eager"), inputs_of(name, "left")
    texts, record = generated(model, inputs, **WAYS[way])
    assert_decoder(model, record, texts, 2, inputs["attention_mask"])


@pytest.mark.parametrize("way", ["greedy", "beams", "static"])
@pytest.mark.parametrize("name", ["mistral", "gemma2", "gpt_oss"])
def test_a_decoder_with_windows(name, way):
    """A cache of a window lets go of keys that the record still has."""
    model, inputs = make(name, "eager"), inputs_of(name)
    texts, record = generated(model, inputs, **WAYS[way])
    assert_decoder(model, record, texts, 2)


@pytest.mark.parametrize("padding", ["none", "right"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["t5", "marian"])
def test_an_encoder_decoder(name, way, padding):
    model, inputs = make(name), inputs_of(name, padding)
    del inputs["decoder_input_ids"]
    texts, record = generated(model, inputs, **WAYS[way])
    assert record.items == len(texts)
    for item, text in enumerate(texts):
        own, place = record.item(item), item * 2 // len(texts)
        length = own.of_kind("decoder")[0].shape[1]
        mask = inputs["attention_mask"][place, None] if padding == "right" else None
        outputs = read_through(model, text[None, :length], inputs["input_ids"][place, None], mask)
        for kind in ("encoder", "decoder", "cross"):
            for layer, expected in zip(own.of_kind(kind), outputs[f"{kind}_attentions"], strict=True):
                torch.testing.assert_close(layer.weights(), expected[0], rtol=0, atol=1e-5)


def test_masks_of_generated_texts_are_kept_by_their_structure():
    _, record = generated(make("llama"), inputs_of("llama", "left"), do_sample=False)
    assert isinstance(record.layers[0].maps[0].mask, Causal)
    assert isinstance(record.layers[0].maps[1].mask, Ranges)


def test_texts_that_end_early():
    """One text of a batch is over while the other goes on: from then on it is fed padding."""
    model, inputs = make("llama"), inputs_of("llama")
    free = model.generate(**inputs, max_new_tokens=NEW, do_sample=False)
    model.generation_config.eos_token_id = int(free[0, 10])
    texts, record = generated(model, inputs, do_sample=False)
    assert 0 in texts[0].tolist()
    assert record.items == 2
    maps = read_through(model, texts[1:, : record.layers[0].shape[1]]).attentions
    torch.testing.assert_close(record.item(1).layers[1].weights(), maps[1][0], rtol=0, atol=1e-5)
    early = read_through(model, texts[:1, :11]).attentions
    torch.testing.assert_close(record.layers[1].weights()[:, :11, :11], early[1][0], rtol=0, atol=1e-5)


def test_beams_that_end_early():
    model, inputs = make("marian"), inputs_of("marian")
    del inputs["decoder_input_ids"]
    free = model.generate(**inputs, max_new_tokens=NEW, do_sample=False)
    model.generation_config.eos_token_id = int(free[1, 3])
    texts, record = generated(model, inputs, num_beams=3, do_sample=False)
    for item, text in enumerate(texts):
        own = record.item(item)
        length = own.of_kind("decoder")[0].shape[1]
        maps = read_through(model, text[None, :length], inputs["input_ids"][item, None]).cross_attentions
        torch.testing.assert_close(own.of_kind("cross")[1].weights(), maps[1][0], rtol=0, atol=1e-5)


def test_generated_tokens_are_told_from_the_prompt():
    texts, record = generated(make("llama"), inputs_of("llama"), do_sample=False)
    side = record.item(1).layers[0].queries[0]
    assert side.generated == 9
    assert side.texts == tuple(f"#{number}" for number in texts[1, : len(side)].tolist())


def test_two_calls_are_two_runs():
    model, inputs = make("llama"), inputs_of("llama")
    with regard.watch(model) as record:
        first = model.generate(**inputs, max_new_tokens=3, do_sample=False)
        second = model.generate(**inputs, max_new_tokens=NEW, do_sample=False)
    assert len(record.runs) == 2
    for run, texts in zip(record.runs, (first, second), strict=True):
        assert_decoder(model, run, texts, 2)


def test_two_calls_of_an_encoder_decoder_are_two_runs():
    model, inputs = make("t5"), inputs_of("t5")
    del inputs["decoder_input_ids"]
    with regard.watch(model) as record:
        model.generate(**inputs, max_new_tokens=3, do_sample=False)
        model.generate(input_ids=inputs["input_ids"][:, :4], max_new_tokens=4, do_sample=False)
    assert [run.of_kind("encoder")[0].shape for run in record.runs] == [(4, 9, 9), (4, 4, 4)]
    assert [run.of_kind("cross")[0].shape[-1] for run in record.runs] == [9, 4]


def test_a_second_call_that_goes_on_from_the_first_ones_cache():
    from transformers import DynamicCache

    model = make("llama")
    ids = inputs_of("llama")["input_ids"][:1]
    cache = DynamicCache(config=model.config)
    with regard.watch(model) as record:
        text = model.generate(ids, past_key_values=cache, max_new_tokens=4, do_sample=False)
        longer = torch.cat((text, ids[:, :3]), dim=1)
        text = model.generate(longer, past_key_values=cache, max_new_tokens=4, do_sample=False)
    last = record.runs[-1]
    length = last.layers[0].shape[-1]
    maps = read_through(model, text[:, :length]).attentions
    for layer, expected in zip(last.layers, maps, strict=True):
        torch.testing.assert_close(layer.weights(), expected[0][:, -layer.shape[1] :], rtol=0, atol=1e-5)


def test_an_assistant_that_guesses_ahead():
    """Guesses that are thrown away leave no rows."""
    model, inputs = make("llama"), {"input_ids": inputs_of("llama")["input_ids"][:1]}
    guesser = make("llama")
    with torch.no_grad():
        for own in guesser.model.layers[1].parameters():
            own.add_(0.1 * torch.randn(own.shape, generator=torch.Generator().manual_seed(3)))
    texts, record = generated(model, inputs, do_sample=False, assistant_model=guesser)
    assert not torch.equal(guesser.generate(**inputs, max_new_tokens=NEW, do_sample=False), texts)
    assert_decoder(model, record, texts, 1)


def test_guesses_from_the_prompt():
    model, inputs = make("llama"), {"input_ids": inputs_of("llama")["input_ids"][:1].repeat(1, 2)}
    texts, record = generated(model, inputs, do_sample=False, prompt_lookup_num_tokens=3)
    assert_decoder(model, record, texts, 1)


def test_a_compiled_static_cache_is_refused():
    model = make("llama")
    with pytest.raises(WatchError, match="disable_compile=True"), regard.watch(model):
        model.get_compiled_call(None)
