"""Watching models of pictures and text, and models whose attention is of a kind that has no map."""

import pytest
import torch

import regard
from regard.errors import WatchError

pytest.importorskip("transformers")

import transformers as hf

from .models import COMMON, DECODER, PICTURE, inputs_of, uneven
from .test_watch_families import watched
from .test_watch_generate import NEW

IMAGE = 99  # the token that stands for one patch of a picture
PATCHES = 16


def llava():
    """A tiny LLaVA: the model itself embeds its tokens, and hands them on embedded."""
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(**DECODER), vision_config=hf.CLIPVisionConfig(**PICTURE, projection_dim=16),
        image_token_id=IMAGE, vision_feature_layer=-1,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.LlavaForConditionalGeneration(config).eval()
    uneven(model)
    model.generation_config = hf.GenerationConfig(pad_token_id=0, bos_token_id=1, eos_token_id=2)
    return model


def inputs_with_pictures():
    ids = inputs_of("llama")["input_ids"].clamp(max=IMAGE - 1)
    ids = torch.cat((ids[:, :2], torch.full((2, PATCHES), IMAGE), ids[:, 2:]), dim=1)
    return {"input_ids": ids, "pixel_values": inputs_of("vit")["pixel_values"]}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_pictures_and_text(attention):
    model, inputs = llava(), inputs_with_pictures()
    model.set_attn_implementation(attention)
    record = watched(model, inputs)
    assert [layer.kind for layer in record.layers] == ["encoder"] * 2 + ["decoder"] * 2
    assert [layer.shape for layer in record.layers] == [(4, 17, 17)] * 2 + [(4, 25, 25)] * 2
    assert record.layers[-1].queries[1].texts == tuple(f"#{number}" for number in inputs["input_ids"][1].tolist())
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**inputs, output_attentions=True).attentions
    for layer, expected in zip(record.layers[2:], maps, strict=True):
        for item in range(2):
            torch.testing.assert_close(layer.weights(item=item), expected[item], rtol=0, atol=1e-5)


@pytest.mark.parametrize("pictures", [False, True])
@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"num_beams": 4, "num_return_sequences": 2}])
def test_beams_of_a_model_that_embeds_its_tokens_itself(options, pictures):
    """The layers' own model is never given token ids; which beam a text came by is known all the same."""
    model = llava()
    inputs = inputs_with_pictures() if pictures else {"input_ids": inputs_of("llama")["input_ids"].clamp(max=98)}
    options = {"max_new_tokens": NEW, "do_sample": False, "bad_words_ids": [[IMAGE]], **options}
    plain = model.generate(**inputs, **options)
    with regard.watch(model) as record:
        texts = model.generate(**inputs, **options)
    assert torch.equal(plain, texts)
    assert record.items == len(texts)
    for item, text in enumerate(texts):
        own = record.item(item).of_kind("decoder")
        length = own[0].shape[1]
        picture = {"pixel_values": inputs["pixel_values"][item * 2 // len(texts), None]} if pictures else {}
        model.set_attn_implementation("eager")
        with torch.no_grad():
            maps = model(text[None, :length], **picture, output_attentions=True).attentions
        model.set_attn_implementation("sdpa")
        for layer, expected in zip(own, maps, strict=True):
            torch.testing.assert_close(layer.weights(), expected[0], rtol=0, atol=1e-5)


def test_keys_of_two_texts_in_one_are_refused_step_by_step():
    """T5Gemma 2 looks at its own text and at the other in one attention: new keys stand in the middle of the old."""
    text = {**DECODER, "head_dim": 8, "sliding_window": 4}
    config = hf.T5Gemma2Config(
        encoder={"text_config": text, "vision_config": {**PICTURE}}, decoder=text, image_token_index=IMAGE
    )
    torch.manual_seed(0)
    model = hf.T5Gemma2ForConditionalGeneration(config).eval()
    model.generation_config = hf.GenerationConfig(pad_token_id=0, eos_token_id=2, decoder_start_token_id=1)
    ids = inputs_of("llama")["input_ids"].clamp(max=IMAGE - 1)
    with pytest.raises(WatchError, match="do not go on from those of the step before"), regard.watch(model):
        model.generate(ids, max_new_tokens=4, do_sample=False)
    inputs = {"input_ids": ids, "decoder_input_ids": ids[:, :5]}
    assert [layer.shape for layer in watched(model, inputs).layers] == [(4, 9, 9)] * 2 + [(4, 5, 14)] * 2


def test_a_model_without_attention_says_so():
    model = hf.FNetModel(hf.FNetConfig(**{**COMMON, "num_attention_heads": 1})).eval()
    with pytest.raises(WatchError, match=r"^fnet: the model ran, and no attention was seen"), regard.watch(model):
        model(**inputs_of("bert"))
