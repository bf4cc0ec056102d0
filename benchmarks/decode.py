"""Decoding on a CPU: a translator of 60M parameters in 8 bits, against CTranslate2 and Hugging Face's generate.

python benchmarks/decode.py [--rounds 7] [--threads 2]      writes results/decode.md
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time

import torch
from measure import machine, publish

from regard.model import Translator, TranslatorConfig, TranslatorStepper
from regard.model.decoding import Limits, beam, greedy
from regard.model.export.ctranslate2 import export
from regard.model.int8 import available, quantised

VOCABULARY, PAD, START, END = 32000, 0, 1, 2
SHAPE = {"width": 512, "heads": 8, "depth": 12, "decoder_depth": 2, "hidden": 2048, "positions": "sinusoidal"}
BATCH, SHORTEST, LONGEST, WRITTEN = 32, 16, 48, 32
WIDTHS = (1, 4)  # of the beam; 1 is greedy
PAUSE = 0.4  # seconds: threads of the engine before go on turning for 0.2 s, and would take the next one's cores
PIECES = ["[PAD]", "[CLS]", "[SEP]", *(f"t{number}" for number in range(3, VOCABULARY))]


def translator():
    """Random weights; whoever makes it has the same."""
    torch.manual_seed(0)
    return Translator(TranslatorConfig(vocabulary=VOCABULARY, **SHAPE)).eval()


def sources():
    """Ids of texts of differing length, and which are tokens."""
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (BATCH,), generator=draw)
    mask = torch.arange(LONGEST) < lengths[:, None]
    ids = torch.randint(3, VOCABULARY, (BATCH, LONGEST), generator=draw).masked_fill(~mask, PAD)
    longest = int(lengths.max())
    return ids[:, :longest], mask[:, :longest]


def ours(make):
    """Decoding by a stepper that `make` makes of the model; the tokens of each text."""
    stepper, (ids, mask) = make(translator()), sources()
    start, limits = torch.full((BATCH,), START), Limits(end=END, longest=WRITTEN, shortest=WRITTEN)

    def decode(width):
        state = stepper.begin(ids, mask)
        if width == 1:
            return [text.tokens for text in greedy(stepper, state, start, limits)]
        return [texts[0].tokens for texts in beam(stepper, state, start, limits, width=width)]

    return decode


def ctranslate(kind, threads):
    import ctranslate2

    folder = tempfile.TemporaryDirectory()
    export(translator(), f"{folder.name}/model", PIECES, quantisation=kind)
    engine = ctranslate2.Translator(
        f"{folder.name}/model", device="cpu", compute_type=kind, inter_threads=1, intra_threads=threads
    )
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    ids, mask = sources()
    texts = [[PIECES[number] for number in row[seen]] for row, seen in zip(ids.numpy(), mask.numpy(), strict=True)]

    def decode(width):
        found = engine.translate_batch(
            texts, beam_size=width, min_decoding_length=WRITTEN, max_decoding_length=WRITTEN, length_penalty=0.6
        )
        return [tuple(numbers[piece] for piece in one.hypotheses[0]) for one in found]

    decode.kept = folder
    return decode


def hugging_face():
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    blocks = {f"{part}_{name}": number for part in ("encoder", "decoder")
              for name, number in (("attention_heads", SHAPE["heads"]), ("ffn_dim", SHAPE["hidden"]))}  # fmt: skip
    model = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY, d_model=SHAPE["width"], encoder_layers=SHAPE["depth"],
            decoder_layers=SHAPE["decoder_depth"], activation_function="relu", scale_embedding=True, pad_token_id=PAD,
            eos_token_id=END, decoder_start_token_id=START, forced_eos_token_id=None, **blocks,
        )
    ).eval()  # fmt: skip
    ids, mask = sources()

    def decode(width):
        with torch.inference_mode():
            found = model.generate(
                input_ids=ids, attention_mask=mask.long(), num_beams=width, do_sample=False, min_new_tokens=WRITTEN,
                max_new_tokens=WRITTEN, **({} if width == 1 else {"length_penalty": 0.6}),
            )  # fmt: skip
        return [tuple(row[1:]) for row in found.tolist()]

    return decode


ENGINES = {
    "Regard, 8 bits": lambda threads: ours(quantised),
    "CTranslate2, int8": lambda threads: ctranslate("int8", threads),
    "Regard, float32": lambda threads: ours(TranslatorStepper),
    "CTranslate2, float32": lambda threads: ctranslate("float32", threads),
    "Hugging Face generate, float32": lambda threads: hugging_face(),
}


def serve(pipe, name, threads):
    """An engine in a process of its own, as threads of two in one would stand in each other's way."""
    torch.set_num_threads(threads)
    decode = ENGINES[name](threads)
    pipe.send("ready")
    while (width := pipe.recv()) is not None:
        start = time.perf_counter()
        tokens = decode(width)
        pipe.send((time.perf_counter() - start, tokens))


class Engine:
    def __init__(self, name, threads):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, name, threads), daemon=True)
        self.process.start()
        self.pipe.recv()

    def decode(self, width):
        """Seconds, and the tokens of each text."""
        self.pipe.send(width)
        return self.pipe.recv()

    def close(self):
        self.pipe.send(None)
        self.process.join()


def measured(engines, rounds):
    """Seconds of each engine and width, in turn, the order turned round each time; and what they wrote."""
    taken, written = {}, {}
    for turn in range(-1, rounds):
        for width in WIDTHS:
            for name in sorted(engines, reverse=bool(turn % 2)):
                time.sleep(PAUSE)
                seconds, tokens = engines[name].decode(width)
                assert all(len(text) == WRITTEN for text in tokens), (name, width)
                if turn >= 0:
                    taken.setdefault((name, width), []).append(seconds)
                written[name, width] = tokens
    return taken, written


def speed_rows(taken):
    """Tokens per second and what they are of the others', all rounds by their medians."""
    rows = []
    for width in WIDTHS:
        speeds = {name: BATCH * WRITTEN / statistics.median(taken[name, width]) for name in ENGINES}
        fastest = {name: BATCH * WRITTEN / min(taken[name, width]) for name in ENGINES}
        for name, speed in speeds.items():
            rows.append([
                "greedy" if width == 1 else f"beam {width}", name, f"{speed:,.0f}", f"{fastest[name]:,.0f}",
                f"{speed / speeds['CTranslate2, int8']:.2f}", f"{speed / speeds['Hugging Face generate, float32']:.2f}",
            ])  # fmt: skip
    return rows


def same_rows(written):
    """How many texts two engines write alike. Random weights leave nothing to choose by a wide margin."""
    pairs = (
        ("Regard, float32", "CTranslate2, float32"), ("Regard, 8 bits", "Regard, float32"),
        ("CTranslate2, int8", "CTranslate2, float32"),
    )  # fmt: skip
    return [
        ["greedy" if width == 1 else f"beam {width}", f"{one} and {other}",
         f"{sum(map(tuple.__eq__, written[one, width], written[other, width]))} of {BATCH}"]
        for width in WIDTHS
        for one, other in pairs
    ]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    engines = {name: Engine(name, options.threads) for name in ENGINES}
    taken, written = measured(engines, options.rounds)
    for engine in engines.values():
        engine.close()
    parameters = sum(weight.numel() for weight in translator().parameters())
    _, mask = sources()
    kernels = "" if available() else " This build of PyTorch has no 8-bit kernels."
    publish(
        "decode", "Decoding on a CPU: tokens per second",
        f"{machine('torch', 'ctranslate2', 'transformers')}; {options.threads} threads. A translator of "
        f"{parameters / 1e6:.0f}M parameters, {SHAPE['depth']} + {SHAPE['decoder_depth']} blocks, random weights, the "
        f"same for Regard and CTranslate2, a Marian of the same shape for Hugging Face. {BATCH} texts of {SHORTEST} to "
        f"{LONGEST} tokens, {int(mask.sum()):,} in all; {WRITTEN} tokens are written for each, by all. Each engine in "
        f"a process of its own, in turn, medians of {options.rounds} rounds.{kernels}",
        [["", "engine", "tokens/s", "fastest round", "of CTranslate2 int8", "of Hugging Face"], *speed_rows(taken)],
        [["", "texts written alike", ""], *same_rows(written)],
    )  # fmt: skip


if __name__ == "__main__":
    main()
