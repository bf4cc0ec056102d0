"""A translator as a folder of CTranslate2, the inference engine in C++: the same weights, the same answers."""

# E width, H heads, F hidden columns

import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import FileError, MissingExtra, OptionError, ShapeError
from ...replacing import reason
from ..attention import MultiHeadAttention
from ..blocks import DecoderBlock, EncoderBlock
from ..embedding import Positions
from ..feed_forward import FeedForward
from ..options import require_name
from ..translator import Translator

QUANTISATIONS = ("float32", "int8", "int8_float32", "int16", "float16", "bfloat16")


def export(
    model: Translator, folder: Path | str, tokens: Sequence[str], target_tokens: Sequence[str] | None = None, *,
    start: str = "[CLS]", end: str = "[SEP]", unknown: str = "[PAD]", quantisation: str = "float32",
) -> None:  # fmt: skip
    """Into a new folder, for `ctranslate2.Translator(folder)`.

    tokens: the pieces of the vocabulary as text, in the order of their ids; target_tokens: of the target's, where there
    are two. start, end: the pieces that begin and end what is written; the source is to be given with its end. unknown:
    the piece that stands for what the vocabulary has not.
    """
    require_name("quantisation", quantisation, QUANTISATIONS)
    specs = _specs()
    spec = _filled(specs, model)
    written = tokens if target_tokens is None else target_tokens
    _require_vocabularies(model, tokens, target_tokens)
    for name in (start, end, unknown):
        if name not in written:
            raise OptionError(f"{name!r} is no piece of the vocabulary; say which ones begin, end and are unknown.")
    spec.register_source_vocabulary(list(tokens))
    spec.register_target_vocabulary(list(written))
    spec.config.bos_token = spec.config.decoder_start_token = start
    spec.config.eos_token, spec.config.unk_token = end, unknown
    spec.config.layer_norm_epsilon = model.encoder.config.eps
    spec.validate()
    spec.optimize(quantization=None if quantisation == "float32" else quantisation)
    _write(spec, Path(folder))


def _specs() -> Any:
    try:
        from ctranslate2 import specs
    except ImportError as missing:
        raise MissingExtra("an export to CTranslate2 needs its package: pip install regard[export]") from missing
    return specs


def _filled(specs: Any, model: Translator) -> Any:
    """The description of the model that CTranslate2 reads, with its weights in it."""
    config = model.config
    activations = specs.common_spec.Activation
    activation = {"relu": activations.RELU, "gelu": activations.GELU, "swiglu": activations.SWISH}[config.activation]
    options = {
        "pre_norm": config.norm_first, "activation": activation, "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm == "rms", "num_heads_kv": config.key_heads,
    }  # fmt: skip
    if config.positions == "rotary":
        options |= {"rotary_dim": config.width // config.heads, "rotary_interleave": False}
        options |= {"rotary_base": config.rotary_base}
    parts = specs.transformer_spec
    encoder = parts.TransformerEncoderSpec(config.depth, config.heads, **options)
    decoder = parts.TransformerDecoderSpec(config.decoder_depth, config.heads, **options)
    if config.positions == "rotary":
        del encoder.position_encodings  # of the decoder's description there is none then
    _fill_ends(encoder, decoder, model)
    for described, stack in ((encoder, model.encoder), (decoder, model.decoder)):
        for layer, block in zip(described.layer, stack.blocks, strict=True):
            _fill_block(layer, block)  # type: ignore[arg-type]
        if stack.norm is not None:
            _fill_norm(described.layer_norm, stack.norm)
    return parts.TransformerSpec(encoder, decoder)


def _fill_ends(encoder: Any, decoder: Any, model: Translator) -> None:
    """Embeddings, positions, and the matrix that guesses."""
    target = model.embedding if model.target_embedding is None else model.target_embedding
    encoder.embeddings[0].weight, decoder.embeddings.weight = _array(model.embedding.weight), _array(target.weight)
    decoder.projection.weight = _array(target.weight if model.output is None else model.output.weight)
    for described, positions in ((encoder, model.positions), (decoder, model.target_positions)):
        if positions.kind != "rotary":
            described.position_encodings.encodings = _table(positions, model.config.width)


def _table(positions: Positions, width: int) -> np.ndarray:
    """What is added to each place, (longest, E)."""
    longest = len(positions.table)
    with torch.no_grad():
        return _array(positions(torch.zeros(1, longest, width))[0])


def _fill_block(layer: Any, block: EncoderBlock | DecoderBlock) -> None:
    own = block.attention
    _fill_norm(layer.self_attention.layer_norm, block.attention_norm)
    _fill_linear(layer.self_attention.linear[0], own.to_query, own.to_key, own.to_value)
    _fill_linear(layer.self_attention.linear[1], own.output)
    if isinstance(block, DecoderBlock):
        _fill_norm(layer.attention.layer_norm, block.cross_norm)
        _fill_cross(layer.attention, block.cross_attention)
    _fill_norm(layer.ffn.layer_norm, block.feed_forward_norm)
    _fill_feed_forward(layer.ffn, block.feed_forward)


def _fill_cross(described: Any, layer: MultiHeadAttention) -> None:
    _fill_linear(described.linear[0], layer.to_query)
    _fill_linear(described.linear[1], layer.to_key, layer.to_value)
    _fill_linear(described.linear[2], layer.output)


def _fill_feed_forward(described: Any, part: FeedForward) -> None:
    _fill_linear(described.linear_0, part.to_hidden)
    if part.to_gated is not None:
        _fill_linear(described.linear_0_noact, part.to_gated)
    _fill_linear(described.linear_1, part.output)


def _fill_linear(described: Any, *linears: nn.Linear) -> None:
    """Layers that read the same are one there, row under row."""
    described.weight = _array(torch.cat([linear.weight for linear in linears]))
    if linears[0].bias is not None:
        described.bias = _array(torch.cat([linear.bias for linear in linears]))


def _fill_norm(described: Any, norm: Any) -> None:
    described.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        described.beta = _array(torch.zeros_like(norm.weight) if norm.bias is None else norm.bias)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()


def _require_vocabularies(model: Translator, tokens: Sequence[str], target: Sequence[str] | None) -> None:
    config = model.config
    if (target is None) != (config.target_vocabulary is None):
        has = "one vocabulary for both texts" if config.target_vocabulary is None else "a vocabulary for each text"
        raise OptionError(f"the model has {has}; give tokens{'' if target is not None else ' and target_tokens'}.")
    for name, given, wanted in (
        ("tokens", tokens, config.vocabulary),
        ("target_tokens", target or (), config.target_vocabulary or 0),
    ):
        if len(given) != wanted:
            raise ShapeError(f"{name} has {len(given):,} pieces and the model {wanted:,}; are they of its tokenizer?")
        if len(set(given)) != len(given):
            raise OptionError(f"{name} has the same piece twice; CTranslate2 tells pieces apart by their text.")


def _write(spec: Any, folder: Path) -> None:
    """Whole or not at all: into a folder beside it, which then takes its name."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already, and not empty; give the name of a new folder.")
    temporary = folder.with_name(f".regard-{secrets.token_hex(8)}.part")
    try:
        temporary.mkdir(parents=True)
        spec.save(str(temporary))
        for file in temporary.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        temporary.replace(folder)
    except OSError as error:
        raise FileError(f"{folder} cannot be written: {reason(error, folder)}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
