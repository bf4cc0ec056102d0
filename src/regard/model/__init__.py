"""tokens → predictions, in PyTorch: attention layers, blocks, encoder and decoder."""

from ..errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise MissingExtra("regard.model needs PyTorch: pip install regard[torch]") from missing

from .answerer import Answerer, AnswererConfig
from .attention import Attended, MultiHeadAttention, Rotary, SelfAttention
from .blocks import BlockConfig, DecoderBlock, EncoderBlock
from .cache import BlockCache, KeyValueCache, StackCache
from .classifier import Classifier, ClassifierConfig
from .convert import from_torch, to_torch
from .decoder import Decoder
from .encoder import Encoder
from .encoder_decoder import EncoderDecoder
from .feed_forward import FeedForward
from .kinds import load
from .language_model import LanguageModel, LanguageModelConfig
from .norm import make_norm
from .reader import Reader, ReaderConfig
from .stepping import LanguageModelStepper, TranslatorStepper
from .text_encoder import TextEncoder, TextEncoderConfig
from .translator import Memory, Translator, TranslatorConfig

__all__ = [
    "Answerer", "AnswererConfig", "Attended", "BlockCache", "BlockConfig", "Classifier", "ClassifierConfig", "Decoder",
    "DecoderBlock", "Encoder", "EncoderBlock", "EncoderDecoder", "FeedForward", "KeyValueCache", "LanguageModel",
    "LanguageModelConfig", "LanguageModelStepper", "Memory", "MultiHeadAttention", "Reader", "ReaderConfig", "Rotary",
    "SelfAttention", "StackCache", "TextEncoder", "TextEncoderConfig", "Translator", "TranslatorConfig",
    "TranslatorStepper", "from_torch", "load", "make_norm", "to_torch",
]  # fmt: skip
