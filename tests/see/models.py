"""Small models of transformers with tokenizers of their own, saved as their makers save them."""

from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

TEXT = "the cat sat on mat a dog ran ##s ##ing . it was tired because"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *TEXT.split()]
SOURCE = ["<pad>", "</s>", "<unk>", "▁the", "▁cat", "▁sat", "▁on", "▁mat", "▁le", "▁chat", "s"]
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "initializer_range": 0.4}


def wordpiece() -> Any:
    engine = Tokenizer(models.WordPiece({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=engine, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


def bytes_alone() -> Any:
    alphabet = {letter: place for place, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    engine = Tokenizer(models.BPE(alphabet | {"<|end|>": len(alphabet)}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    return hf.PreTrainedTokenizerFast(tokenizer_object=engine, eos_token="<|end|>", pad_token="<|end|>")


def sentencepiece() -> Any:
    engine = Tokenizer(models.WordLevel({word: place for place, word in enumerate(SOURCE)}, unk_token="<unk>"))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    engine.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=engine, unk_token="<unk>", pad_token="<pad>", eos_token="</s>", model_input_names=["input_ids"]
    )


def bert(**changes: Any) -> Any:
    options = {"vocab_size": len(WORDS), "hidden_size": 32, "max_position_embeddings": 64, **SIZES}
    return hf.BertModel(hf.BertConfig(**{**options, **changes}))


def gpt2() -> Any:
    sizes = {"vocab_size": 257, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "initializer_range": 0.4}
    return hf.GPT2LMHeadModel(hf.GPT2Config(**sizes, bos_token_id=256, eos_token_id=256))


def marian() -> Any:
    sides = {f"{side}_{what}": size for side in ("encoder", "decoder")
             for what, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))}  # fmt: skip
    return hf.MarianMTModel(
        hf.MarianConfig(
            vocab_size=len(SOURCE), d_model=32, max_position_embeddings=64, pad_token_id=0, eos_token_id=1,
            decoder_start_token_id=0, init_std=0.4, **sides,
        )
    )  # fmt: skip


def vit() -> Any:
    return hf.ViTModel(hf.ViTConfig(hidden_size=32, image_size=16, patch_size=4, **SIZES))


def save(folder: Path, model: Any, tokenizer: Any = None) -> Path:
    """Into a folder, the tokenizer beside the model if there is one."""
    with torch.no_grad():
        model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return folder


def save_all(home: Path) -> dict[str, Path]:
    """A reader, a writer and a translator, by name, each the same whenever it is made."""
    made = {"bert": (bert, wordpiece), "gpt2": (gpt2, bytes_alone), "marian": (marian, sentencepiece)}
    found = {}
    for name, (model, tokenizer) in made.items():
        torch.manual_seed(0)
        found[name] = save(home / name, model(), tokenizer())
    return found
