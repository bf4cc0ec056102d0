"""The watch: every call of a model's attention, put in its layer, its run and its row."""

# B batch, H query heads, G key heads, Q queries, K keys

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import OptionError, WatchError
from ...formula.masks import Mask
from ...formula.masks.mask import Both
from ...formula.masks.places import Causal, Ranges
from ..record import Run
from . import registry
from .calls import Call
from .checks import Checks, overwritten
from .heads import chosen_heads, of_bias, of_mask, of_sinks, of_tensor
from .modules import PLAIN, chosen_modules, is_compiled, refuse_compiled, related, traits
from .places import place
from .runs import runs_of
from .strands import Step, Strand

__all__ = ["Slot", "Watch"]

CROSS = re.compile(r"cross|encoder_attn|encdec|encoder_decoder|enc_dec|multihead_attn", re.IGNORECASE)


@dataclass(eq=False)
class Slot:
    """One layer: a module, and which of its calls within one forward (ALBERT calls one module for every layer)."""

    name: str
    module: nn.Module
    turn: int
    strands: list[Strand] = field(default_factory=list)
    causal: bool = False
    heads: int = 0  # of the queries

    @property
    def title(self) -> str:
        """What it is called in an error: the model itself has no name in the model."""
        return self.name or type(self.module).__name__


class Watch(registry.Observer):
    """What `regard.watch` sets up: it is told of calls by the stand-ins, and makes runs of them when asked."""

    def __init__(
        self, model: nn.Module, *, layers: Iterable[int | str] | None, heads: Iterable[int] | None, to: Any,
        values: bool, gradients: bool, tokenizer: Any, strict: bool,
    ) -> None:  # fmt: skip
        if not isinstance(model, nn.Module):
            raise OptionError(f"{type(model).__name__} is no torch.nn.Module; regard.watch takes a PyTorch model.")
        self.model, self.tokenizer, self.strict = model, tokenizer, strict
        self.values, self.gradients = values or gradients, gradients
        self._look_round()
        self.chosen = chosen_modules(model, layers)
        self.heads = chosen_heads(heads)
        self.place = place(to)
        self.slots: dict[tuple[str, int], Slot] = {}
        self.turns: dict[str, int] = {}  # how often a module was called in the forward that goes on
        self.depth = 0  # of the model's own forward
        self.ran: dict[int, nn.Module] = {}  # modules that look like attention and did run
        self.checks = Checks()
        self.waiting: tuple[Call, tuple[int, ...]] | None = None  # a call, and the versions its tensors had
        self.texts: dict[str, tuple[Tensor | None, Tensor | None]] = {}  # owner of token ids -> ids, segments
        self.given: list[tuple[int, Any, Any]] = []  # ids and segments that modules were given, not yet looked at
        self.bases: dict[str, int] = {}  # owner -> where the rows of its latest call begin
        self.episode, self.generating = 0, 0
        self.results: dict[int, tuple[Tensor, int]] = {}  # by episode: what generate() returned, and for how many texts
        self.latest: dict[int, Step] = {}  # id of a module -> what its latest call left
        self.decoded: list[tuple[Any, Any, Any]] = []  # masks that were read, as they were then
        self.handles: list[Any] = []
        self.forwards = 0
        self.built: tuple[int, list[Run]] = (-1, [])
        self.changes = 0
        self.over = False  # whether the block has been left

    def _look_round(self) -> None:
        """Every module of the model, once and in a hurry, for the model waits: which there are, which matter.

        Most are of classes that do not matter; names are looked up when a layer is seen, while a GPU is busy.
        """
        self.modules = modules = set()
        self.kinds: set[type[nn.Module]] = set()
        self.noted: list[nn.Module] = []  # those that look like attention, read tokens, or are layers of our own
        waiting: list[nn.Module | None] = [self.model]
        for module in waiting:  # which grows
            if type(module) in PLAIN or module is None or id(module) in modules:
                continue
            kind = type(module)
            modules.add(id(module))
            self.kinds.add(kind)
            state, known = module.__dict__, traits(kind)
            parts = state["_modules"]
            if parts:
                waiting += parts.values()
            if "forward" in state or "_compiled_call_impl" in state or "_orig_mod" in parts or known.rewritten:
                self._require_plain(module)
            if known.matters:
                self.noted.append(module)
        self.modules -= {id(module) for module in self.noted if traits(type(module)).part}

    def _require_plain(self, module: nn.Module) -> None:
        """An error where a module is compiled; one whose forward is merely another function is as good as any."""
        state = module.__dict__
        rewritten = traits(type(module)).rewritten or "_compiled_call_impl" in state or "_orig_mod" in state["_modules"]
        if rewritten or is_compiled(state.get("forward")):
            refuse_compiled(next(name for name, one in self.model.named_modules() if one is module), module)

    @cached_property
    def names(self) -> dict[int, str]:
        """id of a module -> its name in the model."""
        return {id(module): name for name, module in self.model.named_modules()}

    def runs(self) -> list[Run]:
        """Everything that was seen so far."""
        self._take_waiting()
        self._read_given()
        if self.built[0] != self.changes:
            self.built = (self.changes, runs_of(self))
        return self.built[1]

    # -- what is told

    def saw(self, call: Call) -> None:
        """One call of attention."""
        if _in_backward():
            return  # in a backward pass: what checkpointing computes a second time
        if call.query.is_cuda and torch.cuda.is_current_stream_capturing():
            raise WatchError(
                "the model is being captured into a CUDA graph; a replay would run without being seen. "
                "Watch it outside of the graph."
            )
        first = self.waiting is None and not self.slots
        self._take_waiting()
        if first and call.is_large and self.place.refers and not self.gradients and not call.query.is_inference():
            self.waiting = call, call.versions
        else:
            self._take(call)

    def _take_waiting(self) -> None:
        """The first call of all is taken up at the second: by then a GPU has a layer's work, and nobody waits."""
        if self.waiting is None:
            return
        (call, then), self.waiting = self.waiting, None
        if call.versions[:2] != then[:2]:
            raise overwritten(self.names[id(call.module)] or type(call.module).__name__)
        self._take(call if call.versions == then else replace(call, value=None, output=None))

    def _take(self, call: Call) -> None:
        name = self.names[id(call.module)]
        turn = self.turns[name] = self.turns.get(name, -1) + 1
        if not self.depth:
            turn = 0
        if self.chosen is not None and name not in self.chosen:
            return
        self.changes += 1
        slot = self.slots.setdefault((name, turn), Slot(name, call.module, turn, heads=call.query.shape[1]))
        if self.strict:
            self.checks.call(slot.title, call)
        self._put(slot, call)

    def saw_output(self, call: Call) -> None:
        """What came of the latest call of a layer that told of it beforehand."""
        self._take_waiting()
        if id(call.module) in self.latest:
            self._await_gradient(self.latest[id(call.module)], call)

    def reordered(self, order: Tensor) -> None:
        """Beams changed places."""
        self._take_waiting()
        for slot in self.slots.values():
            if slot.strands:
                slot.strands[-1].reorder(order)

    def returned(self, texts: Tensor, given: int) -> None:
        """generate() is over: its texts, so many for each that it was given."""
        self._take_waiting()
        self.results[self.episode] = (texts, given)
        self.changes += 1

    def began(self, model: nn.Module, *_: Any) -> None:
        """The model's forward begins."""
        self._take_waiting()
        self.depth += model is self.model
        self.forwards += 1
        if self.depth == 1:
            self.turns.clear()

    def ended(self, model: nn.Module, *_: Any) -> None:
        """The model's forward is over, be it by an exception."""
        self._take_waiting()
        self.depth -= model is self.model

    def note(self, module: nn.Module, *_: Any) -> None:
        """A module that looks like attention runs."""
        if id(module) in self.modules:  # and not a copy of one that was made meanwhile, hooks and all
            self.ran[id(module)] = module

    def read(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module that takes token ids was called."""
        if id(module) not in self.modules:
            return
        given = dict(zip(traits(type(module)).takes, args, strict=False)) | kwargs
        self.given.append((id(module), given.get("input_ids", given.get("ids")), given.get("token_type_ids")))

    def _read_given(self) -> None:
        """Token ids by the names of the modules that were given them; put off until a GPU is busy."""
        copies: dict[int, Tensor] = {}  # a model hands its ids on to its parts: one copy is enough
        for module, *parts in self.given:
            tensors = [part for part in parts if isinstance(part, Tensor) and part.ndim == 2]
            copies |= {id(part): part.detach().clone() for part in tensors if id(part) not in copies}
            ids, segments = (copies.get(id(part)) for part in parts)
            self.texts[self.names[module]] = ids, segments
        self.given.clear()

    # -- rows

    def _put(self, slot: Slot, call: Call) -> None:
        self._read_given()
        owner = self.owner(slot.name)
        ids = self.texts.get(owner, (None, None))[0]
        queries, handed = call.query.shape[2], call.key.shape[2]
        cross = bool(CROSS.search(slot.name)) or getattr(call.module, "is_cross_attention", False)
        cross = cross if call.cross is None else call.cross
        whole = cross or queries == handed or not call.grows
        extent = handed - 1 if whole else call.extent
        if cross:
            base = self._cross_base(slot, owner)
        else:
            base = 0 if whole else self._base(slot, call, extent)
            self.bases[owner] = base
            slot.causal = slot.causal or _looks_back(call)
        strand = self._strand(slot, call, cross, base)
        if strand.steps and not cross and base == strand.rows:
            self.checks.follows(slot.title, strand, call.key[:, :, extent - queries])
        again = cross and bool(strand.steps)
        new = slice(extent + 1 - queries if strand.steps else 0, extent + 1)
        step = Step(
            query=self._keep(_evened(call), slot),
            key=None if again else self._keep(_part(call.key, new), slot),
            value=None if again or not self.values or call.value is None else self._keep(_part(call.value, new), slot),
            mask=of_mask(call.mask, self.heads), bias=of_bias(call.bias, self.heads), handed=handed,
            base=base, shift=0 if whole else base + queries - 1 - extent,
            ids=ids if ids is not None and tuple(ids.shape) == (call.query.shape[0], queries) else None,
        )  # fmt: skip
        strand.add(step)
        if not cross:
            strand.tail = call.key[:, :, extent].detach().clone()
        if cross and strand.source_ids is None:
            strand.source_ids = self._source_ids(owner, handed, call.query.shape[0])
        self.latest[id(call.module)] = step
        self._await_gradient(step, call)

    def _strand(self, slot: Slot, call: Call, cross: bool, base: int) -> Strand:
        """The strand that a call goes on with, or a new one."""
        texts, queries = call.query.shape[0], call.query.shape[2]
        same = [
            one for one in slot.strands if one.cross == cross and one.batch == texts and one.episode == self.episode
        ]
        before = [one for one in same if one.rows == base] if base else []
        if len(before) > 1 and not cross:  # several texts of one length: the keys say which
            handed = call.key[:, :, call.extent - queries]
            before = [one for one in before if one.ends_with(handed)] or before
        if before:
            return before[-1]
        if self.generating and same and same[-1] is slot.strands[-1]:
            if 0 < base < same[-1].rows:
                return same[-1]  # what a draft wrote was taken back
            if base == 0 and queries > same[-1].rows and slot.causal | cross:
                slot.strands.pop()  # generate() without a cache: the whole text again, and one token more
        sinks = of_sinks(call.sinks, self.heads)
        slot.strands.append(Strand(call.scale, call.softcap, sinks, cross, episode=self.episode))
        return slot.strands[-1]

    def _base(self, slot: Slot, call: Call, extent: int) -> int:
        """Where the first query stands among all keys of its text, those included that a cache no longer hands over."""
        queries = call.query.shape[2]
        base = max(0, extent + 1 - queries)
        for strand in reversed(slot.strands) if base else ():
            if base < strand.rows and strand.ends_with(call.key[:, :, extent - queries]):
                return strand.rows  # a window has moved on, and with it the first key
        return base

    def _cross_base(self, slot: Slot, owner: str) -> int:
        if owner in self.bases:
            return self.bases[owner]
        return slot.strands[-1].rows if self.generating and slot.strands else 0

    def _keep(self, tensor: Tensor, slot: Slot) -> Any:
        kept = self.place.keep(of_tensor(tensor, self.heads, slot.heads, slot.title))
        if isinstance(kept, Tensor):
            self.checks.stays(slot.title, kept)
        return kept

    def _await_gradient(self, step: Step, call: Call) -> None:
        if self.gradients and call.result is not None and call.output is not None and call.result.requires_grad:
            turned = call.way not in ("sdpa", "own")  # transformers' functions give (B, Q, H, V)
            learn = partial(self._learn_gradient, step, tuple(call.output.shape), turned)
            call.result.register_hook(learn)

    def _learn_gradient(self, step: Step, shape: tuple[int, ...], turned: bool, gradient: Tensor) -> None:
        self.changes += 1
        kept = gradient.detach()
        kept = kept.transpose(1, 2) if turned else kept.reshape(shape)
        step.gradient[:] = [self.place.keep(kept if self.heads is None else kept[:, self.heads])]

    def owner(self, name: str) -> str:
        """The innermost module around a layer that was given token ids: one inside it may be given them embedded."""
        around = [owner for owner in self.texts if not owner or name == owner or name.startswith(owner + ".")]
        given = [owner for owner in around if self.texts[owner][0] is not None]
        return max(given or around, key=len, default="")

    def _source_ids(self, owner: str, keys: int, batch: int) -> Tensor | None:
        for other, (ids, _) in reversed(self.texts.items()):
            if other != owner and ids is not None and ids.shape[1] == keys and batch % len(ids) == 0:
                return ids.repeat_interleave(batch // len(ids), dim=0)
        return None

    # -- whether it is right

    def finish(self) -> None:
        """When the watch ends without an exception: anything that was not seen, or not understood, is said here."""
        self._take_waiting()
        self.checks.require_untouched()
        if self.strict:
            self.checks.compare_samples()
            self._require_all()
            self.checks.require_right(self.family)  # last: from here on a GPU is waited for

    def _require_all(self) -> None:
        if self.forwards and not self.slots and not self.ran and self.chosen is None:
            raise WatchError(
                f"{self.family}: the model ran, and no attention was seen in it: {type(self.model).__name__} calls "
                "neither transformers' attention interface nor torch's attention functions. If it mixes its tokens "
                "in another way (convolution, Fourier, a state space), there is no map to record."
            )
        seen = {slot.name for slot in self.slots.values()}
        ran = {self.names[key]: module for key, module in self.ran.items()}
        unseen = [name for name in ran if not any(related(name, other) for other in seen)]
        if self.chosen is not None:
            unseen = [name for name in unseen if any(related(name, other) for other in self.chosen)]
        if not unseen:
            return
        kinds = ", ".join(sorted({type(ran[name]).__name__ for name in unseen}))
        some = f"{len(unseen)} of {len(unseen) + len(seen)} attention layers" if seen else "attention"
        raise WatchError(
            f"{self.family}: {some} could not be seen: {kinds} (the first is {unseen[0]}) computes it by itself, "
            "neither through transformers' attention interface nor through torch's attention functions. "
            + ("regard.watch(model, strict=False) records the others. " if seen else "")
            + "If the family has another implementation (attn_implementation='sdpa'), load the model with that."
        )

    @property
    def family(self) -> str:
        """The model's family, as its configuration or its class names it."""
        config = getattr(self.model, "config", None)
        return getattr(config, "model_type", None) or type(self.model).__name__


def _in_backward() -> bool:
    """Whether autograd runs this, as it does what checkpointing computes a second time."""
    ask = getattr(torch._C, "_current_graph_task_id", None)
    return ask is not None and ask() != -1


def _evened(call: Call) -> Tensor:
    """The queries, with 0 for rows that looked at all keys alike: q·k is then the same for all."""
    if call.even is None:
        return call.query
    return call.query.masked_fill(call.even[:, None, :, None], 0.0)


def _part(tensor: Tensor, places: slice) -> Tensor:
    """Some keys; copied, since a cache may write over what is not its own."""
    if places.start == 0 and places.stop >= tensor.shape[2]:
        return tensor
    return tensor[:, :, places].clone()


def _looks_back(call: Call) -> bool:
    """Whether a self-attention is a decoder's: by its mask, or, where one row has none to show, by its module."""
    if _has_causal(call.mask):
        return True
    if isinstance(call.mask, Ranges):
        queries, keys = call.query.shape[2], call.key.shape[2]
        last = call.mask.last.reshape(-1, queries)
        behind = last <= torch.arange(keys - queries, keys, device=last.device)
        behind = behind if call.even is None else behind | call.even
        return queries > 1 and bool(behind.all())
    return call.query.shape[2] == 1 and bool(getattr(call.module, "is_causal", False))


def _has_causal(mask: Mask | None) -> bool:
    if isinstance(mask, Both):
        return _has_causal(mask.one) or _has_causal(mask.other)
    return isinstance(mask, Causal)
