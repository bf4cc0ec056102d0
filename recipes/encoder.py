"""Trains the text encoder that ships with Regard, on WikiText-2, and measures what it and its heads learned.

python recipes/encoder.py --data wikitext2 --out encoder                     trains, measures, writes the card
python recipes/encoder.py --data wikitext2 --out encoder --report            measures and writes the card anew
python recipes/encoder.py --data wikitext2 --out encoder --small --steps 20  a dry run, for any computer

data: a folder with train.raw.xz, valid.raw.xz and test.raw.xz. After `pip install ".[train]"`.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import card
import heads
import scores
import torch
import wikitext
from batches import Corpus, Rows, hide
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from regard.model.text_encoder import TextEncoder, TextEncoderConfig
from regard.text.bpe import Tokenizer

PAGE = 256  # tokens of a page, and of the rows that valid and test are cut into
LOOKS = 30  # times that a run is measured on the validation text


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run: as long as `minutes`, or as many as `steps`."""

    minutes: float
    steps: int | None
    seed: int
    tokens: int = 32768  # of a batch
    pages: tuple[int, ...] = (PAGE, 2 * PAGE)
    share: float = 0.2  # of the pieces that are hidden
    rate: float = 1e-3  # the highest rate of learning
    warm: float = 0.05  # part of the run in which it rises
    decay: float = 0.1
    dropout: float = 0.1
    vocabulary: int = 7168
    articles: int | None = None  # of each text, all unless given
    width: int = 256
    heads: int = 8
    depth: int = 6
    hidden: int = 512

    def config(self, tokenizer: Tokenizer) -> TextEncoderConfig:
        """The shape of the model. Rotary positions reach twice as far as they were trained (figures: the card)."""
        return TextEncoderConfig(
            vocabulary=tokenizer.size, width=self.width, heads=self.heads, depth=self.depth, hidden=self.hidden,
            longest=2 * max(self.pages), dropout=self.dropout, tokenizer=tokenizer.hash,
        )  # fmt: skip


def small(plan: Plan) -> Plan:
    """For a dry run: nothing is learned, and everything is done once."""
    return replace(
        plan, tokens=1024, pages=(64, 128), vocabulary=1000, articles=3, width=64, heads=2, depth=2, hidden=128
    )  # fmt: skip


@dataclass
class Run:
    """Where a run stands."""

    step: int = 0
    seconds: float = 0.0
    looks: int = 0
    best: float = math.inf
    curve: tuple[tuple[int, float, float], ...] = ()  # step, loss on the batches since the last look, validation loss

    def done(self, plan: Plan) -> float:
        """The part of the run that lies behind, 0 to 1."""
        return self.step / plan.steps if plan.steps else self.seconds / (60 * plan.minutes)


def rate(plan: Plan, done: float) -> float:
    """The rate of learning: up in a line, down in half a wave of the cosine."""
    if done < plan.warm:
        return plan.rate * done / plan.warm
    return plan.rate * 0.5 * (1 + math.cos(math.pi * min(1.0, (done - plan.warm) / (1 - plan.warm))))


def make_optimizer(model: nn.Module, plan: Plan) -> torch.optim.AdamW:
    """AdamW; only matrices decay."""
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    others = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": plan.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=plan.rate, betas=(0.9, 0.98), fused=matrices[0].is_cuda)


def loss_of(model: TextEncoder, ids: Tensor, tokenizer: Tokenizer, share: float) -> Tensor:
    """How surprised the model is at what was hidden. Only there is the vocabulary's whole width computed."""
    batch = hide(ids, tokenizer, share)
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.is_cuda):
        vectors = model.vectors(batch.ids)
        logits = model.guess(vectors.gather(1, batch.places[..., None].expand(-1, -1, vectors.shape[-1])))
    return functional.cross_entropy(logits.flatten(0, 1).float(), batch.answers.flatten())


def train(
    model: TextEncoder, texts: dict[str, Corpus], tokenizer: Tokenizer, plan: Plan, *, out: Path, state: Path | None
) -> Run:
    """Trains; `out` has the model that was best on the validation text, `state` all it takes to go on."""
    optimizer, run = make_optimizer(model, plan), Run()
    rows = Rows(texts["train"], tokenizer, tokens=plan.tokens, pages=plan.pages, seed=plan.seed)
    if state is not None and state.exists():
        run = resume(state, model, optimizer, rows)
    before = time.perf_counter() - run.seconds
    losses: list[Tensor] = []
    while run.done(plan) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate(plan, run.done(plan))
        losses.append(learn(model, optimizer, loss_of(model.train(), rows.draw(), tokenizer, plan.share)))
        run.step, run.seconds = run.step + 1, time.perf_counter() - before
        if run.done(plan) * LOOKS >= run.looks + 1:
            found = scores.score(model, texts["valid"].ids, tokenizer, plan.pages[0])
            if found.loss < run.best:
                model.save(out, half=True)
            look(run, plan, float(torch.stack(losses).mean()), found)
            losses.clear()
            if state is not None:
                keep(state, model, optimizer, rows, run)
    return run


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> Tensor:
    """One step down. The loss is given back as it is on the device, where nobody has to wait for it."""
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def look(run: Run, plan: Plan, loss: float, found: scores.Score) -> None:
    """Writes down, and says, how the run is going."""
    run.looks, run.best = int(run.done(plan) * LOOKS), min(run.best, found.loss)
    run.curve = (*run.curve, (run.step, round(loss, 4), round(found.loss, 4)))
    print(
        f"step {run.step:6d}  {run.seconds:6.1f} s  loss {loss:.3f}  valid {found.loss:.3f}  "
        f"perplexity {found.perplexity:6.2f}  right {found.accuracy:.1%}", flush=True
    )  # fmt: skip


def _tensors(model: nn.Module, optimizer: torch.optim.Optimizer, rows: Rows) -> Iterator[tuple[str, Tensor]]:
    yield from ((f"model/{name}", weight) for name, weight in model.state_dict().items())
    for number, kept in optimizer.state_dict()["state"].items():
        yield from ((f"optimizer/{number}/{name}", tensor) for name, tensor in kept.items())
    yield "luck/rows", rows.generator.get_state()
    yield "luck/cpu", torch.get_rng_state()
    if torch.cuda.is_available():
        yield "luck/cuda", torch.cuda.get_rng_state()


def keep(state: Path, model: nn.Module, optimizer: torch.optim.Optimizer, rows: Rows, run: Run) -> None:
    """Everything that a run is, in one safetensors file, written under another name first."""
    tensors = {name: tensor.detach().cpu().clone() for name, tensor in _tensors(model, optimizer, rows)}
    written = state.with_suffix(".tmp")
    save_file(tensors, written, metadata={"run": json.dumps(asdict(run))})
    written.replace(state)


def resume(state: Path, model: nn.Module, optimizer: torch.optim.Optimizer, rows: Rows) -> Run:
    """The run goes on as if it had never stopped."""
    with safe_open(state, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        run = Run(**json.loads(file.metadata()["run"]))
    under = {
        room: {name.removeprefix(f"{room}/"): t for name, t in tensors.items() if name.startswith(f"{room}/")}
        for room in ("model", "optimizer", "luck")
    }
    model.load_state_dict(under["model"])
    kept: dict[int, dict[str, Tensor]] = {}
    for name, tensor in under["optimizer"].items():
        number, part = name.split("/")
        kept.setdefault(int(number), {})[part] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": kept})
    rows.generator.set_state(under["luck"]["rows"])
    torch.set_rng_state(under["luck"]["cpu"])
    if "cuda" in under["luck"]:
        torch.cuda.set_rng_state(under["luck"]["cuda"])
    return run


def report(out: Path, texts: dict[str, Corpus], tokenizer: Tokenizer, device: torch.device) -> None:
    """Measures the model of the folder on valid and test, looks at its heads, and writes the card."""
    model = TextEncoder.load(out).to(device)
    pages = card.read(out / "training.json")["plan"]["pages"]
    page, far = pages[0], 4 * max(pages)
    longer = TextEncoder(replace(model.config, longest=far)).to(device)
    longer.load_state_dict(model.state_dict())
    torch.manual_seed(0)
    untrained = TextEncoder(model.config).to(device)
    measured = {
        "scores": {
            name: {
                "model": asdict(scores.score(model, texts[name].ids, tokenizer, page)),
                "frequency": asdict(scores.by_frequency(texts["train"].ids, texts[name].ids, tokenizer.size)),
            }
            for name in ("valid", "test")
        },
        "lengths": {
            length: asdict(scores.score(longer, texts["valid"].ids, tokenizer, length))
            for length in (page // 8, page // 4, page // 2, page, far // 4, far // 2, far)
        },
        "heads": {
            name: heads.measure(one, texts["valid"].ids, tokenizer)
            for name, one in (("trained", model), ("untrained", untrained))
        },
    }
    card.write(out / "measured.json", json.dumps(measured) + "\n")
    card.write(out / "README.md", card.card(out))
    print((out / "README.md").read_text(encoding="utf-8"))


def read(data: Path, out: Path, plan: Plan, *, new: bool, device: torch.device) -> tuple[Tokenizer, dict[str, Corpus]]:
    """The tokenizer, a new one or that of the folder, and the three texts in its pieces."""
    articles = {
        name: wikitext.articles(data / f"{name}.raw.xz")[: plan.articles] for name in ("train", "valid", "test")
    }
    if new:
        sentences = (text for article in articles["train"] for paragraph in article for text in paragraph)
        Tokenizer.train(sentences, plan.vocabulary).save(out)
    tokenizer = Tokenizer.load(out)
    texts = {name: Corpus.of(some, tokenizer, device) for name, some in articles.items()}
    print(", ".join(f"{name} {len(corpus.ids):,} pieces" for name, corpus in texts.items()), flush=True)
    return tokenizer, texts


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train, valid and test .raw.xz")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--minutes", type=float, default=7.4, help="of training (default: 7.4)")
    parser.add_argument("--steps", type=int, help="so many batches, however long they take")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--resume", type=Path, help="a file that keeps the run; if it is there, the run goes on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dropout", type=float, default=Plan.dropout)
    parser.add_argument("--rate", type=float, default=Plan.rate, help="the highest rate of learning")
    parser.add_argument("--small", action="store_true", help="a small model and a little of the text: a dry run")
    parser.add_argument("--report", action="store_true", help="no training: measure the folder, write its card")
    return parser.parse_args()


def main() -> None:
    """Trains unless there is only to report, then reports."""
    asked = arguments()
    device = torch.device(asked.device)
    plan = Plan(minutes=asked.minutes, steps=asked.steps, seed=asked.seed, dropout=asked.dropout, rate=asked.rate)
    plan = small(plan) if asked.small else plan
    going_on = asked.resume is not None and asked.resume.exists()
    tokenizer, texts = read(asked.data, asked.out, plan, new=not asked.report and not going_on, device=device)
    if not asked.report:
        torch.manual_seed(plan.seed)
        model = TextEncoder(plan.config(tokenizer)).to(device)
        run = train(model, texts, tokenizer, plan, out=asked.out, state=asked.resume)
        name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
        facts = {"plan": asdict(plan), "run": asdict(run), "device": name, "torch": torch.__version__}
        card.write(asked.out / "training.json", json.dumps(facts) + "\n")
    report(asked.out, texts, tokenizer, device)


if __name__ == "__main__":
    main()
