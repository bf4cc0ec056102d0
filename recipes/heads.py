"""What each head of a text encoder looks at: its mean weight on the token before, on the same piece elsewhere …"""

# B rows, N tokens of a row, L layers, H heads

import torch
from batches import with_ends
from torch import Tensor

from regard.model.text_encoder import TextEncoder
from regard.text.bpe import Tokenizer

LENGTH, ROWS = 128, 64
MEASURES = {
    "previous": "the token before",
    "next": "the token after",
    "second before": "the second before",
    "second after": "the second after",
    "itself": "itself",
    "word": "the other pieces of its word",
    "same": "the same piece elsewhere",
    "punctuation": "punctuation",
    "first": "[CLS]",
    "last": "[SEP]",
}


@torch.no_grad()
def measure(model: TextEncoder, ids: Tensor, tokenizer: Tokenizer) -> dict[str, list[list[float]]]:
    """Mean weight by measure, each L lists of H numbers, over all tokens but the ends, on the first rows of a corpus.

    A token that has nowhere to look, as one whose piece occurs once has for "same", is not counted.
    """
    rows = min(ROWS, len(ids) // (LENGTH - 2))
    text = with_ends(ids[: rows * (LENGTH - 2)].view(rows, LENGTH - 2), tokenizer)
    wanted = targets(text, tokenizer)
    sums: dict[str, list[Tensor]] = {name: [] for name in MEASURES}
    for weights in maps(model, text):  # (B, H, N, N), a layer at a time
        for name, target in wanted.items():
            asked = target.any(-1)[:, None, 1:-1]  # (B, 1, N − 2)
            mass = (weights * target[:, None]).sum(-1)[:, :, 1:-1]
            sums[name].append((mass * asked).sum((0, 2)) / asked.sum())
    return {name: [[round(mean, 4) for mean in layer.tolist()] for layer in layers] for name, layers in sums.items()}


def maps(model: TextEncoder, ids: Tensor) -> list[Tensor]:
    """The weights of every layer, (B, H, N, N) each."""
    found: list[Tensor] = []
    attentions = [block.attention for block in model.encoder.blocks]
    hooks = [
        attention.register_forward_pre_hook(lambda layer, given: found.append(layer.attend(given[0]).weights))
        for attention in attentions
    ]
    try:
        model.eval()
        model.vectors(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def targets(text: Tensor, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Which tokens each measure counts, (B, N, N) booleans: True where token i's look at token j counts."""
    rows, length = text.shape
    place = torch.arange(length, device=text.device)
    marks = punctuation(tokenizer).to(text.device)
    words = (begins_word(tokenizer).to(text.device) | marks)[text].cumsum(1)  # to which word of the row a token belongs
    apart = (place[None] - place[:, None]).expand(rows, -1, -1)  # how far after i token j stands
    return {
        "previous": apart == -1,
        "next": apart == 1,
        "second before": apart == -2,
        "second after": apart == 2,
        "itself": apart == 0,
        "word": (words[:, :, None] == words[:, None]) & (apart != 0),
        "same": (text[:, :, None] == text[:, None]) & (apart != 0),
        "punctuation": marks[text][:, None].expand_as(apart),
        "first": (place == 0).expand_as(apart),
        "last": (place == length - 1).expand_as(apart),
    }


def punctuation(tokenizer: Tokenizer) -> Tensor:
    """Which pieces are nothing but punctuation, (V,) booleans."""
    written = [tokenizer.decode([number]).strip() for number in range(tokenizer.size)]
    return torch.tensor([bool(text) and text.isascii() and not any(map(str.isalnum, text)) for text in written])


def begins_word(tokenizer: Tokenizer) -> Tensor:
    """Which pieces begin something new, (V,) booleans: after a space, on a new line, or special."""
    return torch.tensor([tokenizer.piece(number).startswith(("Ġ", "Ċ", "[")) for number in range(tokenizer.size)])
