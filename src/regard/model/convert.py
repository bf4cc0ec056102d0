"""Weights to and from PyTorch's own layers: nn.MultiheadAttention and the nn.Transformer family.

The answers are the same, the masks are not: nn.MultiheadAttention's booleans mean True = may NOT attend. And those
layers are causal only when told so, while a decoder here is unless told otherwise (mask=None).
"""

# E width

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, overload

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import DtypeError, OptionError
from .attention import MultiHeadAttention
from .blocks import BlockConfig, DecoderBlock, EncoderBlock
from .decoder import Decoder
from .encoder import Encoder
from .encoder_decoder import EncoderDecoder

__all__ = ["from_torch", "to_torch"]

State = dict[str, Tensor]
Names = dict[str, str]  # ours → PyTorch's
Made = TypeVar("Made", bound=nn.Module)
TorchBlock = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
OurBlock = EncoderBlock | DecoderBlock
TorchStack = nn.TransformerEncoder | nn.TransformerDecoder

PARTS = ("to_query", "to_key", "to_value")  # in the order in which PyTorch packs them
ENCODER_NAMES = {
    "attention": "self_attn",
    "attention_norm": "norm1",
    "feed_forward.to_hidden": "linear1",
    "feed_forward.output": "linear2",
    "feed_forward_norm": "norm2",
}
DECODER_NAMES = ENCODER_NAMES | {
    "cross_attention": "multihead_attn",
    "cross_norm": "norm2",
    "feed_forward_norm": "norm3",
}


@overload
def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention: ...
@overload
def from_torch(module: nn.TransformerEncoderLayer) -> EncoderBlock: ...
@overload
def from_torch(module: nn.TransformerDecoderLayer) -> DecoderBlock: ...
@overload
def from_torch(module: nn.TransformerEncoder) -> Encoder: ...
@overload
def from_torch(module: nn.TransformerDecoder) -> Decoder: ...
@overload
def from_torch(module: nn.Transformer) -> EncoderDecoder: ...
def from_torch(module: nn.Module) -> nn.Module:
    """Our layer with copies of the weights of PyTorch's, in the same dtype, device and mode (training or not)."""
    for kind, read in READERS.items():
        if isinstance(module, kind):
            return read(module).train(module.training)
    raise DtypeError(f"{type(module).__name__} cannot be read; from_torch takes {_names(READERS)}.")


@overload
def to_torch(layer: MultiHeadAttention, *, batch_first: bool = ...) -> nn.MultiheadAttention: ...
@overload
def to_torch(layer: EncoderBlock, *, batch_first: bool = ...) -> nn.TransformerEncoderLayer: ...
@overload
def to_torch(layer: DecoderBlock, *, batch_first: bool = ...) -> nn.TransformerDecoderLayer: ...
@overload
def to_torch(layer: Encoder, *, batch_first: bool = ...) -> nn.TransformerEncoder: ...
@overload
def to_torch(layer: Decoder, *, batch_first: bool = ...) -> nn.TransformerDecoder: ...
@overload
def to_torch(layer: EncoderDecoder, *, batch_first: bool = ...) -> nn.Transformer: ...
def to_torch(layer: nn.Module, *, batch_first: bool = True) -> nn.Module:
    """PyTorch's layer with copies of our weights. What it has no place for is refused by name."""
    for kind, write in WRITERS.items():
        if isinstance(layer, kind):
            return write(layer, batch_first).train(layer.training)
    raise DtypeError(f"{type(layer).__name__} cannot be written; to_torch takes {_names(WRITERS)}.")


def _read_attention(module: nn.MultiheadAttention) -> MultiHeadAttention:
    bias = _require_readable(module)
    source_width = None if module.kdim == module.embed_dim else module.kdim
    with torch.device("meta"):
        layer = MultiHeadAttention(
            module.embed_dim, module.num_heads, source_width=source_width, bias=bias, dropout=module.dropout
        )
    return _filled(layer, _unpacked(module.state_dict()))


def _write_attention(layer: MultiHeadAttention, batch_first: bool) -> nn.MultiheadAttention:
    _require_plain(layer)
    foreign = None if layer.source_width == layer.width else layer.source_width
    with torch.device("meta"):
        module = nn.MultiheadAttention(
            layer.width, layer.heads, dropout=layer.mixing.dropout, bias=layer.output.bias is not None,
            kdim=foreign, vdim=foreign, batch_first=batch_first,
        )  # fmt: skip
    return _filled(module, _packed(layer.state_dict(), packed=foreign is None))


def _read_block(module: TorchBlock, kind: type[EncoderBlock] | type[DecoderBlock], names: Names) -> nn.Module:
    with torch.device("meta"):
        block = kind(_config(module))
    return _filled(block, _unpacked(_renamed(module.state_dict(), {new: old for old, new in names.items()})))


def _write_block(block: OurBlock, batch_first: bool, kind: Callable[..., nn.Module], names: Names) -> nn.Module:
    with torch.device("meta"):
        module = kind(**_arguments(block), batch_first=batch_first)
    return _filled(module, _renamed(_packed(block.state_dict()), names))


def _read_stack(module: TorchStack, kind: type[Encoder] | type[Decoder], of: type[TorchBlock]) -> nn.Module:
    blocks = [from_torch(_of_kind(layer, of)) for layer in module.layers]
    if not blocks:
        raise OptionError(f"{type(module).__name__} has no layers; there is nothing to read.")
    with torch.device("meta"):
        stack = kind(_one_of("settings of the layers", (block.config for block in blocks)), len(blocks))
    stack.blocks, stack.norm = nn.ModuleList(blocks), _copied_norm(module.norm)
    return stack


def _write_stack(stack: Encoder | Decoder, batch_first: bool, kind: Callable[..., nn.Module]) -> nn.Module:
    layers = [to_torch(block, batch_first=batch_first) for block in stack.blocks]  # type: ignore[call-overload]
    module: nn.Module = kind(layers[0], len(layers), norm=_copied_norm(stack.norm))
    module.layers = nn.ModuleList(layers)
    return module


def _read_both(module: nn.Transformer) -> EncoderDecoder:
    encoder, decoder = _of_kind(module.encoder, nn.TransformerEncoder), _of_kind(module.decoder, nn.TransformerDecoder)
    return EncoderDecoder(from_torch(encoder), from_torch(decoder))


def _write_both(model: EncoderDecoder, batch_first: bool) -> nn.Transformer:
    config, empty = model.encoder.config, nn.Identity()  # nn.Transformer would draw new weights for parts it is given
    module = nn.Transformer(
        config.width, config.heads, custom_encoder=empty, custom_decoder=empty, batch_first=batch_first
    )
    module.encoder = to_torch(model.encoder, batch_first=batch_first)
    module.decoder = to_torch(model.decoder, batch_first=batch_first)
    return module


READERS: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.MultiheadAttention: _read_attention,
    nn.TransformerEncoderLayer: partial(_read_block, kind=EncoderBlock, names=ENCODER_NAMES),
    nn.TransformerDecoderLayer: partial(_read_block, kind=DecoderBlock, names=DECODER_NAMES),
    nn.TransformerEncoder: partial(_read_stack, kind=Encoder, of=nn.TransformerEncoderLayer),
    nn.TransformerDecoder: partial(_read_stack, kind=Decoder, of=nn.TransformerDecoderLayer),
    nn.Transformer: _read_both,
}
WRITERS: dict[type[nn.Module], Callable[[Any, bool], nn.Module]] = {
    MultiHeadAttention: _write_attention,
    EncoderBlock: partial(_write_block, kind=nn.TransformerEncoderLayer, names=ENCODER_NAMES),
    DecoderBlock: partial(_write_block, kind=nn.TransformerDecoderLayer, names=DECODER_NAMES),
    # Nested tensors are left off: they zero the vectors of padding, and PyTorch warns wherever it cannot use them.
    Encoder: partial(_write_stack, kind=partial(nn.TransformerEncoder, enable_nested_tensor=False)),
    Decoder: partial(_write_stack, kind=nn.TransformerDecoder),
    EncoderDecoder: _write_both,
}


def _config(module: TorchBlock) -> BlockConfig:
    """PyTorch's settings as ours, once it is sure that one number each says them all."""
    parts = list(module.modules())
    attentions = [part for part in parts if isinstance(part, nn.MultiheadAttention)]
    norms = [part for part in parts if isinstance(part, nn.LayerNorm)]
    rates = [part.p for part in parts if isinstance(part, nn.Dropout)]
    biases = (part.bias is not None for part in (module.linear1, module.linear2, *norms))
    return BlockConfig(
        width=module.linear1.in_features,
        heads=_one_of("heads", (attention.num_heads for attention in attentions)),
        hidden=module.linear1.out_features,
        activation=_activation_name(module.activation),
        norm_first=module.norm_first,
        eps=_one_of("layer_norm_eps", (norm.eps for norm in norms)),
        bias=_one_of("bias", (*biases, *map(_require_readable, attentions))),
        dropout=_one_of("dropout", (*rates, *(attention.dropout for attention in attentions))),
    )


def _arguments(block: OurBlock) -> dict[str, Any]:
    """Our settings as PyTorch's."""
    config = block.config
    for part in block.children():
        if isinstance(part, MultiHeadAttention):
            _require_plain(part)
            if part.source_width != part.width:
                raise OptionError(f"source_width={part.source_width}: nn.Transformer has one width, here {part.width}.")
    if config.norm != "layer":
        raise OptionError(f"norm={config.norm!r}: the layers of nn.Transformer have layer norms only.")
    if config.activation == "swiglu":
        raise OptionError("activation='swiglu': nn.Transformer's feed-forward has two matrices, a gate needs three.")
    return {
        "d_model": config.width, "nhead": config.heads, "dim_feedforward": block.feed_forward.hidden,
        "dropout": config.dropout, "activation": config.activation, "layer_norm_eps": config.eps,
        "norm_first": config.norm_first, "bias": config.bias,
    }  # fmt: skip


def _require_readable(module: nn.MultiheadAttention) -> bool:
    """Whether it has biases, once it is sure that there is nothing in it that has no place here."""
    if module.bias_k is not None or module.add_zero_attn:
        option = "add_zero_attn=True" if module.bias_k is None else "add_bias_kv=True"
        raise OptionError(f"nn.MultiheadAttention with {option} has a key of no token; no layer here has.")
    if module.kdim != module.vdim:
        raise OptionError(
            f"nn.MultiheadAttention with kdim={module.kdim} and vdim={module.vdim} takes keys and values from two "
            "sources; here they come from one, so the two must be equal."
        )
    return bool(_one_of("bias", (module.in_proj_bias is not None, module.out_proj.bias is not None)))


def _require_plain(layer: MultiHeadAttention) -> None:
    if layer.key_heads != layer.heads:
        raise OptionError(
            f"key_heads={layer.key_heads} for {layer.heads} heads: nn.MultiheadAttention cannot group heads."
        )
    if layer.rotary is not None:
        raise OptionError("rotary: nn.MultiheadAttention has no rotary positions.")


def _activation_name(activation: Any) -> str:
    if activation in (functional.relu, torch.relu) or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is functional.gelu or (isinstance(activation, nn.GELU) and activation.approximate == "none"):
        return "gelu"
    name = getattr(activation, "__name__", activation)
    raise OptionError(f"activation {name}: only relu and gelu (the exact one) can be read.")


def _copied_norm(norm: nn.Module | None) -> nn.Module | None:
    """The norm behind the last block, which is the caller's own choice on both sides."""
    if norm is not None and not isinstance(norm, nn.LayerNorm | nn.RMSNorm):
        raise OptionError(f"the final norm is a {type(norm).__name__}; only LayerNorm and RMSNorm can be copied.")
    return copy.deepcopy(norm)


def _unpacked(state: State) -> State:
    """in_proj_weight (3E, E) → to_query.weight, to_key.weight, to_value.weight; q_proj_weight … alike."""
    ours: State = {}
    for name, tensor in state.items():
        where, _, last = name.rpartition(".")
        prefix, kind = f"{where}." if where else "", last.rpartition("_")[2]
        if last.startswith("in_proj_"):
            ours |= {f"{prefix}{part}.{kind}": third for part, third in zip(PARTS, tensor.chunk(3), strict=True)}
        elif last in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
            ours[f"{prefix}{PARTS['qkv'.index(last[0])]}.weight"] = tensor
        else:
            ours[name.replace("out_proj.", "output.")] = tensor
    return ours


def _packed(state: State, *, packed: bool = True) -> State:
    """The way back from `_unpacked`; packed=False keeps the three matrices apart, as kdim and vdim need it."""
    theirs: State = {}
    for name, tensor in state.items():
        prefix, _, kind = name.rpartition("to_query.")
        if kind and "to_query." in name:
            parts = [state[f"{prefix}{part}.{kind}"] for part in PARTS]
            if packed or kind == "bias":
                theirs[f"{prefix}in_proj_{kind}"] = torch.cat(parts)
            else:
                theirs |= {f"{prefix}{letter}_proj_weight": part for letter, part in zip("qkv", parts, strict=True)}
        elif "to_key." not in name and "to_value." not in name:
            theirs[name] = tensor
    return {_with_out_proj(name): tensor for name, tensor in theirs.items()}


def _with_out_proj(name: str) -> str:
    """The attention's `output` as PyTorch calls it; the feed-forward's has a name of its own."""
    return name if "feed_forward" in name else name.replace("output.", "out_proj.")


def _renamed(state: State, names: Names) -> State:
    """`names` says what each prefix is to be called."""
    return {
        new + name.removeprefix(old): tensor
        for name, tensor in state.items()
        for old, new in names.items()
        if name.startswith(f"{old}.")
    }


def _filled(module: Made, state: State) -> Made:
    """The module with copies of these weights, each in the dtype and on the device where it was found."""
    module.load_state_dict({name: tensor.detach().clone() for name, tensor in state.items()}, assign=True)
    return module


def _of_kind(part: nn.Module, kind: type[Made]) -> Made:
    if not isinstance(part, kind):
        raise DtypeError(f"a {type(part).__name__} stands where a {kind.__name__} was expected.")
    return part


def _one_of(what: str, values: Iterable[Any]) -> Any:
    """The value that all have in common."""
    different = list(dict.fromkeys(values))
    if len(different) != 1:
        raise OptionError(f"{what} must be the same throughout, and here it is {', '.join(map(str, different))}.")
    return different[0]


def _names(kinds: Iterable[type[nn.Module]]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)
