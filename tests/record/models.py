"""Small models of many families, by name, with random weights that make their attention uneven."""

# B batch, N tokens

import re
from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn

COMMON = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 48}  # fmt: skip
DECODER = {**COMMON, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BOTH = {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}  # fmt: skip
PICTURE = {**COMMON, "image_size": 16, "patch_size": 4}
PICTURE.pop("vocab_size")


def _clip() -> nn.Module:
    text = {**COMMON, "max_position_embeddings": 32, "eos_token_id": 2}
    return hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=PICTURE, projection_dim=16))


def _whisper() -> nn.Module:
    options = {**BOTH, "num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 32}
    return hf.WhisperForConditionalGeneration(
        hf.WhisperConfig(**options, suppress_tokens=None, begin_suppress_tokens=None)
    )


def _t5() -> nn.Module:
    return hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=100, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
            pad_token_id=0, eos_token_id=2,
        )
    )  # fmt: skip


def _gpt2() -> nn.Module:
    options = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return hf.GPT2LMHeadModel(hf.GPT2Config(**options, bos_token_id=1, eos_token_id=2, pad_token_id=0))


def _gpt_oss() -> nn.Module:
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1}
    return hf.GptOssForCausalLM(hf.GptOssConfig(**DECODER, **experts, head_dim=8, sliding_window=4))


MAKERS: dict[str, Callable[[], nn.Module]] = {
    "bert": lambda: hf.BertModel(hf.BertConfig(**COMMON)),
    "albert": lambda: hf.AlbertModel(hf.AlbertConfig(**{**COMMON, "num_hidden_layers": 3}, embedding_size=16)),
    "gpt2": _gpt2,
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**DECODER)),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**DECODER, sliding_window=4)),
    "gemma2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**DECODER, head_dim=8, sliding_window=4)),
    "gpt_oss": _gpt_oss,
    "t5": _t5,
    "marian": lambda: hf.MarianMTModel(hf.MarianConfig(**BOTH, max_position_embeddings=64)),
    "vit": lambda: hf.ViTModel(hf.ViTConfig(**PICTURE)),
    "whisper": _whisper,
    "clip": _clip,
    "bloom": lambda: hf.BloomModel(hf.BloomConfig(vocab_size=100, hidden_size=32, n_layer=2, n_head=4)),
    "longt5": lambda: hf.LongT5Model(
        hf.LongT5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, local_radius=3)
    ),
    "ibert": lambda: hf.IBertModel(hf.IBertConfig(**COMMON)),
    "doge": lambda: hf.DogeModel(hf.DogeConfig(**DECODER)),
}
ENCODER_DECODERS = ("t5", "marian")


def make(name: str, attention: str = "sdpa") -> Any:
    """A model in evaluation mode, the same whenever it is made."""
    torch.manual_seed(0)
    model: Any = MAKERS[name]().eval()
    uneven(model)
    model.set_attn_implementation(attention)
    return model


def uneven(model: nn.Module) -> None:
    """Weights as large as trained ones: with those of a fresh model, all maps are nearly flat, and errors hide."""
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)
        if not re.search("attention", type(module).__name__, re.IGNORECASE):
            continue
        for name, own in module.named_parameters():
            with torch.no_grad():
                if own.ndim > 1:
                    own.normal_(0, 1.3 * own.shape[-1] ** -0.5)
                elif "sinks" in name:
                    own.normal_()


def inputs_of(name: str, padding: str = "none") -> dict[str, torch.Tensor]:
    """Two texts of nine tokens (or pictures, or sounds); the second padded on the side that is asked for."""
    chance = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 100, (2, 9), generator=chance)
    pictures = torch.randn(2, 3, 16, 16, generator=chance)
    if name == "vit":
        return {"pixel_values": pictures}
    if name == "whisper":
        sound = torch.randn(2, 8, 20, generator=chance)
        return {"input_features": sound, "decoder_input_ids": ids[:, :5]}
    inputs = {"input_ids": ids}
    if padding != "none":
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][1, slice(6, None) if padding == "right" else slice(3)] = 0
    if name in ENCODER_DECODERS or name == "longt5":
        inputs["decoder_input_ids"] = ids[:, 2:7]
    return {**inputs, "pixel_values": pictures} if name == "clip" else inputs
