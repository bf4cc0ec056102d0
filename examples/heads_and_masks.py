"""Lesson 4, the Transformer in PyTorch: one head, masks, many heads, an encoder and a decoder that learn a task.

python examples/heads_and_masks.py [--save FOLDER]
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.lessons.torch import (
    MultiHeadAttention,
    MultiHeadSelfAttention,
    SimpleAttention,
    SingleHeadSelfAttention,
    create_causal_mask,
    create_padding_mask,
    plot_attention_weights,
    positional_encoding,
    self_attention,
)

WIDTH, HEADS, LETTERS, LENGTH = 32, 2, "abcdefghijklmnop", 8


class EncoderBlock(nn.Module):
    """Self-attention, then FFN(x) = ReLU(x·W1 + b1)·W2 + b2, each added to what came in and normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = MultiHeadSelfAttention(WIDTH, HEADS)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        mixed, weights = self.attention(x, mask)
        x = self.norms[0](x + mixed)
        return self.norms[1](x + self.feed_forward(x)), weights


class DecoderBlock(EncoderBlock):
    """Masked self-attention, attention to the encoder's output, and the feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.cross, self.cross_norm = MultiHeadAttention(WIDTH, HEADS), nn.LayerNorm(WIDTH)

    def forward(self, y: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        mixed, _ = self.attention(y, create_causal_mask(y.shape[1]))
        y = self.norms[0](y + mixed)
        found, weights = self.cross.attend(y, memory, memory)
        y = self.cross_norm(y + found)
        return self.norms[1](y + self.feed_forward(y)), weights


class Reverser(nn.Module):
    """Reads letters and writes them backwards, one at a time: an encoder, a decoder, sinusoidal positions."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS) + 1, WIDTH)  # and one more that says: begin
        self.encoder, self.decoder = EncoderBlock(), DecoderBlock()
        self.to_letters = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, source: Tensor, written: Tensor) -> tuple[Tensor, Tensor]:
        places = positional_encoding(source.shape[1], WIDTH)
        memory, _ = self.encoder(self.letters(source) + places)
        y, cross = self.decoder(self.letters(written) + places, memory)
        return self.to_letters(y), cross


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where to put the heat maps")
    folder = parser.parse_args().save
    torch.manual_seed(0)
    torch.set_num_threads(1)  # for so small a model, sharing the work out takes longer than doing it

    one_head()
    many_heads()
    causal, cross, word, answer = transformer()
    if folder is not None:
        from regard.view.plot import head_grid

        folder.mkdir(parents=True, exist_ok=True)
        places = [f"place {place}" for place in range(causal.shape[-1])]
        plot_attention_weights(causal, places, "causal heads, untrained", folder / "causal_heads.png")
        head_grid(cross, answer, word, title="written (rows), read (columns)", path=folder / "cross_heads.png")


def one_head() -> None:
    heading("One head: matrices written out, linear layers, a mask")
    x = torch.randn(2, 5, 16)
    explicit = SimpleAttention(16)
    output, weights = explicit(x)
    by_hand, _ = self_attention(x, explicit.W_q, explicit.W_k, explicit.W_v)
    apart = (output - by_hand).abs().max().item()
    print(f"SimpleAttention: {shapes(output, weights)}; apart from self_attention by {apart}")
    ids = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
    mask = create_causal_mask(5) + create_padding_mask(ids)
    print("causal and padding, as 0 and 1, for the second sentence:", (mask[1] == 0).int().tolist(), sep="\n")
    output, weights = SingleHeadSelfAttention(16)(x, mask)
    print("SingleHeadSelfAttention with it:", shapes(output, weights))
    print(rounded(weights[1]))
    _, weights = explicit(x, torch.zeros(5, 5, dtype=torch.bool))
    print("a mask that forbids everything gives zeros, not NaN:", weights.abs().sum().item() == 0)


def many_heads() -> None:
    heading("Many heads: whose weights are they?")
    x = torch.randn(2, 5, 64)
    theirs = nn.MultiheadAttention(64, 8, batch_first=True)
    print("nn.MultiheadAttention           ", tuple(theirs(x, x, x)[1].shape), "- the mean of the heads")
    print("  average_attn_weights=False    ", tuple(theirs(x, x, x, average_attn_weights=False)[1].shape))
    print("regard's MultiHeadSelfAttention ", tuple(MultiHeadSelfAttention(64, 8)(x)[1].shape), "- each head")


def transformer() -> tuple[Tensor, Tensor, str, str]:
    heading("An encoder and a decoder that learn to write backwards")
    x = positional_encoding(6, WIDTH)[None]
    causal = MultiHeadSelfAttention(WIDTH, HEADS)(x, create_causal_mask(6))[1][0]
    model = Reverser()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(201):
        source = torch.randint(len(LETTERS), (32, LENGTH))
        scores, cross = model(source, shifted(source.flip(1)))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), source.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            right = (scores.argmax(-1) == source.flip(1)).float().mean().item()
            mirrored = cross.flip(-1).diagonal(dim1=-2, dim2=-1).mean(dim=(0, 2)).tolist()
            found = ", ".join(f"head {head} {share:.2f}" for head, share in enumerate(mirrored))
            print(f"step {step:3}: loss {loss.item():.3f}, {right:4.0%} right; weight on the letter to write: {found}")
    word = "deadline"[:LENGTH]
    source = torch.tensor([[LETTERS.index(letter) for letter in word]])
    scores, cross = model(source, shifted(source.flip(1)))
    answer = "".join(LETTERS[number] for number in scores[0].argmax(-1).tolist())
    print(f"{word} → {answer}")
    print(f"where the head that learned it best looks among {' '.join(word)}, letter by letter:")
    best = cross[0].flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1).argmax()
    print(rounded(cross[0, best]))
    return causal, cross[0], word, answer


def shifted(answer: Tensor) -> Tensor:
    """What is known when each letter is to be written: those before it."""
    begin = torch.full((len(answer), 1), len(LETTERS))
    return torch.cat((begin, answer[:, :-1]), dim=1)


def shapes(output: Tensor, weights: Tensor) -> str:
    return f"output {tuple(output.shape)}, weights {tuple(weights.shape)}"


def rounded(table: Tensor) -> str:
    return "\n".join("  " + "".join(f"{weight:6.2f}" for weight in row) for row in table.tolist())


def heading(text: str) -> None:
    print(f"\n== {text}")


if __name__ == "__main__":
    main()
