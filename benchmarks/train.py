"""What training costs on a GPU: tokens per second of `regard train`, beside Hugging Face's Trainer.

python benchmarks/train.py [--only marian|gpt2] [--side ours|trainer|loop ..] [--steps 20] [--rounds 7]
                                                                                          writes results/train.md
"""

import argparse
import inspect
import math
import multiprocessing
import statistics
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from measure import machine, publish
from torch.nn import functional

from regard.model.language_model import LanguageModel, LanguageModelConfig
from regard.model.translator import Translator, TranslatorConfig
from regard.text.batches import Bucketed, Place
from regard.text.store import TokenStore
from regard.text.windows import Windows
from regard.training.checkpoints import Checkpoints
from regard.training.engine import Engine
from regard.training.feeding import Feed, moved
from regard.training.log import Log
from regard.training.loop import Keeping, Loop
from regard.training.ranks import Ranks
from regard.training.settings import TrainingSettings
from regard.training.tasks import LanguageModelling, Translation

PEAK = 989e12  # dense bfloat16 FLOP/s of an H100 or H200, by the datasheet
PAD, FIRST, LAST = 0, 1, 2  # ids; words begin behind them
RATE, DROPOUT, SMOOTHING, CLIP, SEED = 1e-4, 0.1, 0.1, 1.0, 0
WORKERS = 8  # processes in which the Trainer makes its batches; ours are made in a thread
SIDES = {
    "ours": "Regard, the loop of `regard train`",
    "trainer": "Hugging Face's Trainer, grouped by length",
    "loop": "Hugging Face's model in a bare loop, with our batches, its loss compiled too",
}


@dataclass(frozen=True)
class Shape:
    """A model, the text it learns, and how much of it in one step."""

    name: str
    vocabulary: int
    width: int
    heads: int
    depth: int  # of the decoder as well, where there is one
    longest: int
    tokens: int  # of a step; of source and target together, padding and all
    examples: int  # pairs of the corpus, or documents

    @property
    def pairs(self) -> bool:
        return self.name == "marian"


SHAPES = {
    # As opus-mt: 6 + 6 blocks, one embedding of 58,101 pieces for all three places.
    "marian": Shape("marian", 58101, 512, 8, 6, 128, 32_768, 160_000),
    "gpt2": Shape("gpt2", 50257, 768, 12, 12, 1024, 32_768, 16_000),
}


def small(shape: Shape) -> Shape:
    return replace(shape, vocabulary=1001, width=32, heads=2, depth=1, longest=32, tokens=512, examples=2000)


# The text: random words, the frequent ones often, of lengths as sentences and documents have them.


def build_store(shape: Shape, folder: Path) -> TokenStore:
    fields = ("source", "target") if shape.pairs else ("text",)
    limits = dict.fromkeys(fields, shape.longest) if shape.pairs else {}
    return TokenStore.build(folder, examples_of(shape), fields, vocabulary=shape.vocabulary, longest=limits)


def examples_of(shape: Shape):
    rng = np.random.default_rng(SEED)
    typical = math.log(shape.longest / 5 if shape.pairs else shape.longest / 2)
    lengths = np.exp(rng.normal(typical, 0.6, shape.examples))
    ratios = np.exp(rng.normal(0, 0.2, shape.examples))
    for length, ratio in zip(lengths, ratios, strict=True):
        if shape.pairs:
            yield {"source": words(rng, shape, length), "target": words(rng, shape, length * ratio)}
        else:
            yield {"text": words(rng, shape, length)}


def words(rng, shape: Shape, length: float) -> np.ndarray:
    drawn = LAST + 1 + (rng.random(max(1, round(length))) ** 4 * (shape.vocabulary - LAST - 1)).astype(np.int64)
    return np.append(drawn, LAST)


def source_of(shape: Shape, store: TokenStore):
    if shape.pairs:
        return Bucketed(store, tokens=shape.tokens, seed=SEED)
    return Windows(store, length=shape.longest, tokens=shape.tokens, seed=SEED)


def task_of(shape: Shape):
    if shape.pairs:
        return Translation(pad=PAD, first=FIRST, label_smoothing=SMOOTHING)
    return LanguageModelling(pad=PAD)


def feed_of(shape: Shape, store: TokenStore, task, ranks: Ranks) -> Feed:
    return Feed(source_of(shape, store), task.collate, ranks, seed=SEED, sized=task.fields)


# Whose turn it is: each side is a process of its own, which works for a round and then waits for its next.


class Enough(Exception):
    """The last round is over."""


class Pace:
    """Told of steps that were done; a round's time, tokens and memory go to who holds the watch."""

    def __init__(self, pipe, options, device: torch.device) -> None:
        self.pipe, self.warm, self.steps, self.device = pipe, options.warm, options.steps, device
        self.every = math.gcd(math.gcd(self.warm, self.steps), 10)  # steps after which losses are looked at
        self.made, self.began, self.parameters = time.perf_counter(), 0.0, 0

    def reached(self, step: int, tokens) -> None:
        """tokens: a call that counts those since it was last asked; it is made when the clock stands."""
        if step < self.warm or (step - self.warm) % self.steps:
            return
        self._wait_for_gpu()
        now = time.perf_counter()
        counted = tokens()
        if step == self.warm:
            self.pipe.send({"ready": now - self.made, "parameters": self.parameters})
        else:
            self.pipe.send({"seconds": now - self.began, "tokens": counted, "peak": self._peak(), **compiled()})
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # for the others, while they have their turn
        if self.pipe.recv() != "go":
            raise Enough
        self._wait_for_gpu()
        self.began = time.perf_counter()

    def _wait_for_gpu(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self.device.type == "cuda" else 0


def compiled() -> dict[str, int]:
    """How many graphs the compiler made so far, and how often it had to break one off."""
    from torch._dynamo.utils import counters

    return {"graphs": counters["stats"]["unique_graphs"], "breaks": sum(counters["graph_break"].values())}


def side_process(pipe, side: str, shape: Shape, folder: str, options) -> None:
    """One side, from its model to its last round; what goes wrong is told."""
    try:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cuda.enable_cudnn_sdp(options.cudnn and not shape.pairs)
        torch.manual_seed(SEED)
        pace = Pace(pipe, options, device)
        run = {"ours": run_ours, "trainer": run_trainer, "loop": run_loop}[side]
        run(shape, TokenStore.open(Path(folder) / "store"), Path(folder) / side, pace, options)
    except (Enough, EOFError):
        pass
    except BaseException:
        pipe.send({"error": traceback.format_exc()})


# Ours: nothing but what `regard train` puts together.


class Watch:
    """A reporter of the loop's, which is told of every tenth step."""

    def __init__(self, pace: Pace, shape: Shape) -> None:
        self.pace, self.shape, self.before = pace, shape, 0

    def begin(self, told) -> None: ...
    def evaluated(self, entry) -> None: ...
    def end(self, told) -> None: ...
    def say(self, text) -> None: ...

    def step(self, entry) -> None:
        self.pace.reached(entry["step"], lambda: self._since(entry["tokens"]))

    def _since(self, tokens: int) -> int:
        since, self.before = tokens - self.before, tokens
        # A window has one token more than it is long, the last to be guessed; it is not counted here.
        return since if self.shape.pairs else since * self.shape.longest // (self.shape.longest + 1)


def our_model(shape: Shape):
    common = {
        "vocabulary": shape.vocabulary, "width": shape.width, "heads": shape.heads, "depth": shape.depth,
        "dropout": DROPOUT, "norm": "layer", "bias": True,
    }  # fmt: skip
    if shape.pairs:
        return Translator(TranslatorConfig(
            **common, decoder_depth=shape.depth, norm_first=False, positions="sinusoidal", longest=512
        ))  # fmt: skip
    return LanguageModel(LanguageModelConfig(
        **common, activation="gelu", positions="learned", longest=shape.longest, hidden_dropout=0.0
    ))  # fmt: skip


def run_ours(shape: Shape, store: TokenStore, folder: Path, pace: Pace, options) -> None:
    folder.mkdir()
    ranks, task, model = Ranks(0, 1, pace.device), task_of(shape), our_model(shape)
    pace.parameters = parameters(model)
    engine = Engine(model, task, ranks, precision="bfloat16", compiled=options.compile, varied=shape.pairs)
    feed = feed_of(shape, store, task, ranks)
    settings = TrainingSettings(
        steps=10**6, tokens=shape.tokens, learning_rate=RATE, clip=CLIP, log_every=pace.every, evaluate_every=10**9,
        save_every=10**9,
    )  # fmt: skip
    Loop(
        engine, feed, feed, settings, steps=10**6, reporters=[Watch(pace, shape)],
        keeping=Keeping(Checkpoints(folder / "checkpoints", ranks), Log(folder), {}, lambda *_: None),
    ).run()  # fmt: skip


# Theirs.


def their_model(shape: Shape):
    from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel

    if not shape.pairs:
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=shape.vocabulary, n_embd=shape.width, n_head=shape.heads, n_layer=shape.depth,
            n_positions=shape.longest, resid_pdrop=DROPOUT, embd_pdrop=DROPOUT, attn_pdrop=DROPOUT, use_cache=False,
            bos_token_id=FIRST, eos_token_id=LAST,
        ))  # fmt: skip
    sizes = {
        f"{part}_{what}": size
        for part in ("encoder", "decoder")
        for what, size in (("layers", shape.depth), ("attention_heads", shape.heads), ("ffn_dim", 4 * shape.width))
    }
    return MarianMTModel(MarianConfig(
        vocab_size=shape.vocabulary, d_model=shape.width, **sizes, max_position_embeddings=512, scale_embedding=True,
        activation_function="relu", dropout=DROPOUT, attention_dropout=DROPOUT, activation_dropout=DROPOUT,
        use_cache=False, share_encoder_decoder_embeddings=True, tie_word_embeddings=True, pad_token_id=PAD,
        decoder_start_token_id=FIRST, eos_token_id=LAST, forced_eos_token_id=LAST,
    ))  # fmt: skip


def run_trainer(shape: Shape, store: TokenStore, folder: Path, pace: Pace, options) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    model = their_model(shape)
    pace.parameters = parameters(model)
    kept: list[tuple[torch.Tensor | None, torch.Tensor]] = []  # what says which tokens of a round are no padding

    class Counting(Trainer):
        def training_step(self, model, inputs, *others, **named):
            kept.append((inputs.get("attention_mask"), inputs["labels"]))
            return super().training_step(model, inputs, *others, **named)

    class Turns(TrainerCallback):
        def on_step_end(self, arguments, state, control, **others):
            pace.reached(state.global_step, count)

    def count() -> int:
        sources = sum(int(mask.sum()) for mask, _ in kept if mask is not None)
        targets = sum(int((labels != -100).sum()) for _, labels in kept)
        kept.clear()
        return sources + targets

    known = inspect.signature(TrainingArguments.__init__).parameters
    grouped = (
        {} if not shape.pairs
        else {"train_sampling_strategy": "group_by_length"} if "train_sampling_strategy" in known
        else {"group_by_length": True}
    )  # fmt: skip
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=10**6, per_device_train_batch_size=rows_of(shape, store), bf16=True,
        torch_compile=options.compile, optim="adamw_torch_fused", learning_rate=RATE, weight_decay=0.01,
        max_grad_norm=CLIP, label_smoothing_factor=SMOOTHING if shape.pairs else 0.0, logging_steps=pace.every,
        save_strategy="no", report_to="none", disable_tqdm=True, remove_unused_columns=False,
        dataloader_num_workers=0 if options.small else WORKERS, dataloader_pin_memory=pace.device.type == "cuda",
        dataloader_drop_last=True, use_cpu=pace.device.type == "cpu", log_level="error", **grouped,
    )  # fmt: skip
    Counting(
        model=model, args=arguments, train_dataset=their_examples(shape, store),
        data_collator=their_collator(shape, model), callbacks=[Turns()],
    ).train()  # fmt: skip


def their_examples(shape: Shape, store: TokenStore) -> list[dict[str, list[int]]]:
    """The same text, in memory: faster than any file that it could be read from."""
    if shape.pairs:
        rows = store.read(np.arange(len(store)))
        return [{"input_ids": row["source"].tolist(), "labels": row["target"].tolist()} for row in rows]
    starts = np.arange(0, store.total("text") - shape.longest, shape.longest)
    windows = [ids.tolist() for ids in store.stretches(starts, starts + shape.longest)]
    return [{"input_ids": window, "labels": window} for window in windows]


def their_collator(shape: Shape, model):
    from transformers import DataCollatorForSeq2Seq, PreTrainedTokenizerFast, default_data_collator

    if not shape.pairs:
        return default_data_collator
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = Tokenizer(WordLevel({"<pad>": PAD, "<s>": FIRST, "</s>": LAST}, unk_token="<pad>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>")
    return DataCollatorForSeq2Seq(tokenizer, model=model)


def rows_of(shape: Shape, store: TokenStore) -> int:
    """So many rows that a step of the Trainer has on average the tokens that ours has."""
    if not shape.pairs:
        return shape.tokens // shape.longest
    return max(1, round(len(store) / source_of(shape, store).steps()))


def run_loop(shape: Shape, store: TokenStore, folder: Path, pace: Pace, options) -> None:
    """What the Trainer does at each step and nothing besides, on the batches of our side."""
    model, task = their_model(shape).to(pace.device).train(), task_of(shape)
    pace.parameters = parameters(model)
    ranks = Ranks(0, 1, pace.device)

    def loss_of(tensors):
        if not shape.pairs:
            logits = model(input_ids=tensors["ids"]).logits
        else:
            logits = model(
                input_ids=tensors["source"], attention_mask=tensors["source_mask"].long(),
                decoder_input_ids=tensors["given"],
            ).logits  # fmt: skip
        smoothing = SMOOTHING if shape.pairs else 0.0
        return functional.cross_entropy(
            logits.flatten(0, 1).float(), tensors["targets"].flatten(), label_smoothing=smoothing
        )

    call = torch.compile(loss_of) if options.compile else loss_of
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, (step + 1) / 100))
    counted, total = [0], torch.zeros((), device=pace.device)

    def count() -> int:
        found, counted[0] = counted[0], 0
        return found

    for step, portion in enumerate(feed_of(shape, store, task, ranks).after(Place()), 1):
        tensors = moved(portion.parts[0].tensors, pace.device)
        with torch.autocast(pace.device.type, dtype=torch.bfloat16):
            loss = call(tensors)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        total += loss.detach()
        counted[0] += portion.tokens if shape.pairs else portion.parts[0].counts["tokens"]
        if step % pace.every == 0:
            total.item()
        pace.reached(step, count)


# What it comes to.


def parameters(model) -> int:
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def work_of(shape: Shape, store: TokenStore) -> float:
    """FLOPs that the formula asks for, for each token of source or target; forward once and back twice as much.

    6 for each weight of the matrices that a token meets, the output projection among them and the embedding not; and
    for each pair of tokens of which one sees the other, 12 for each column of each layer. Padding is no work.
    """
    width, depth = shape.width, shape.depth
    own, cross, fed = 4 * width**2, 2 * width**2, 8 * width**2  # cross: twice, once from each end
    said = width * shape.vocabulary
    if not shape.pairs:
        n = shape.longest
        return 6 * (depth * (own + fed) + said) + 12 * depth * width * (n + 1) / 2
    sizes = store.sizes(np.arange(len(store))).astype(np.float64)
    s, n = sizes[:, 0], sizes[:, 1]
    matrices = s * depth * (own + fed + cross) + n * (depth * (own + fed + cross) + said)
    seen = depth * width * (s * s + n * s + n * (n + 1) / 2)
    return float((6 * matrices + 12 * seen).sum() / sizes.sum())


def measured(shape: Shape, folder: Path, options) -> list[list[str]]:
    """All sides of one shape, in turn."""
    store = build_store(shape, folder / "store")
    context = multiprocessing.get_context("spawn")
    pipes, processes = {}, []
    for side in options.side:
        pipes[side], theirs = context.Pipe()
        processes.append(context.Process(target=side_process, args=(theirs, side, shape, str(folder), options)))
        processes[-1].start()
        theirs.close()
        if options.one_by_one:
            pipes[side].poll(None)
    ready = {side: received(pipe) for side, pipe in pipes.items()}
    for side in [side for side, told in ready.items() if "error" in told]:
        print(f"{shape.name}, {side}:\n{ready.pop(side)['error']}", file=sys.stderr)
        del pipes[side]
    rounds: dict[str, list[dict]] = {side: [] for side in pipes}
    for turn in range(options.rounds):
        for side in sorted(pipes, reverse=bool(turn % 2)):
            pipes[side].send("go")
            rounds[side].append(told := received(pipes[side]))
            if "error" in told:
                raise SystemExit(f"{shape.name}, {side}:\n{told['error']}")
            print(f"{shape.name} {side}: {told['tokens'] / told['seconds']:,.0f} tokens/s", file=sys.stderr, flush=True)
    for pipe in pipes.values():
        pipe.send("enough")
    for process in processes:
        process.join()
    return rows(shape, work_of(shape, store), ready, rounds, options)


def received(pipe) -> dict:
    try:
        return pipe.recv()
    except EOFError:
        return {"error": "the process ended without a word"}


def rows(shape: Shape, work: float, ready, rounds, options) -> list[list[str]]:
    speeds = {
        side: statistics.median(one["tokens"] / one["seconds"] for one in found) for side, found in rounds.items()
    }
    table = []
    for side, speed in speeds.items():
        found = rounds[side]
        per_step = statistics.mean(one["tokens"] for one in found) / options.steps
        table.append([
            f"{shape.name}, {ready[side]['parameters'] / 1e6:.1f}M", SIDES[side], f"{speed:,.0f}",
            f"{speeds['ours'] / speed:.2f}" if "ours" in speeds else "", f"{work * speed / PEAK:.1%}",
            f"{per_step:,.0f}", f"{per_step / speed * 1e3:.1f} ms", f"{found[-1]['peak'] / 2**30:.1f} GiB",
            f"{found[-1]['graphs']}, {found[-1]['breaks']}", f"{ready[side]['ready']:.0f} s",
        ])  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SHAPES, help="one shape, where both are not wanted")
    parser.add_argument("--side", choices=SIDES, nargs="+", default=list(SIDES))
    parser.add_argument("--steps", type=int, default=20, help="of a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--warm", type=int, default=60, help="steps before the first round, in which all is compiled")
    parser.add_argument("--tokens", type=int, help="of a step, where it is to be another number")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--no-cudnn", dest="cudnn", action="store_false", help="gpt2 too without cuDNN's attention")
    parser.add_argument("--one-by-one", action="store_true", help="sides warm up one behind the other, for less memory")
    parser.add_argument("--small", action="store_true", help="small models and short texts, to try the script")
    options = parser.parse_args()
    table, began = [], time.perf_counter()
    for name in [options.only] if options.only else SHAPES:
        shape = small(SHAPES[name]) if options.small else SHAPES[name]
        shape = replace(shape, tokens=options.tokens or shape.tokens)
        with tempfile.TemporaryDirectory() as folder:
            table += measured(shape, Path(folder), options)
    head = [
        "model, parameters", "", "tokens/s", "ours is … times as fast", "utilisation", "tokens of a step", "a step",
        "peak memory", "graphs, breaks", "ready after",
    ]  # fmt: skip
    if options.small:
        print(*(" | ".join(row) for row in (head, *table)), sep="\n")
        return
    where = torch.cuda.get_device_name() + ", " if torch.cuda.is_available() else ""
    publish(
        "train", "Training, beside Hugging Face's Trainer",
        f"{where}{machine('torch', 'transformers', 'accelerate')}. bfloat16 by autocast, "
        f"{'torch.compile' if options.compile else 'nothing compiled'}, AdamW fused, gradients cut at {CLIP:g}, "
        f"dropout {DROPOUT}, label smoothing {SMOOTHING} for marian. Medians of {options.rounds} rounds of "
        f"{options.steps} steps, sides in turn, each a process of its own; {time.perf_counter() - began:.0f} s in all. "
        "Marian's attention is by any kernel but cuDNN's on all sides, since cuDNN makes a plan for each new shape. "
        "Tokens are those of source and target, padding not counted. Utilisation: (6 FLOPs for each weight that a "
        "token meets, output projection included and embedding not, and 12 for each column of each layer and each "
        f"pair of tokens that see each other) over {PEAK / 1e12:.0f} TFLOP/s.",
        [head, *table],
    )  # fmt: skip


if __name__ == "__main__":
    main()
