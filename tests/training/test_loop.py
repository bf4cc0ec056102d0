"""The loop: its steps, where it stops, and what is there then."""

import os
import signal
import threading
from dataclasses import dataclass, field

import pytest
import torch

from regard.errors import FileError, NotANumber
from regard.text.batches import Place
from regard.training import tasks
from regard.training.watchfulness import EARLY, Diverged

from .small import ALONE, Silent, lines, loop, losses, same, source, steps, tensors
from .small import model as small_model


@dataclass
class Ailing:
    """The task of a language model whose loss is another from a call on."""

    after: int
    more: float
    task: tasks.LanguageModelling = field(default_factory=lambda: tasks.LanguageModelling(pad=0))
    calls: int = 0

    def collate(self, *given):
        return self.task.collate(*given)

    def losses(self, model, tensors):
        self.calls += 1
        found = self.task.losses(model, tensors)
        more = self.more * (tensors["targets"] >= 0).sum() if self.calls > self.after else 0.0
        return {name: value + more for name, value in found.items()}

    def measures(self, model, tensors):
        return self.task.measures(model, tensors)


def numbers_of(folder, step):
    """The examples of the batch of a step, counted from 1."""
    batches = source(folder).after(Place())
    return [next(batches)[1] for _ in range(step)][-1]


def test_it_learns(tmp_path):
    made = loop(tmp_path / "run", steps=40, save_every=1000, learning_rate=1e-2)
    made.run()
    assert losses(tmp_path / "run")[-1] < 0.8 * losses(tmp_path / "run")[0]


@pytest.mark.parametrize("settings", [{}, {"ema": 0.9, "dropout": 0.2}, {"precision": "bfloat16"}])
def test_a_run_in_two_is_a_run_in_one(tmp_path, settings):
    whole = loop(tmp_path / "whole", evaluate_every=5, **settings)
    whole.run()
    loop(tmp_path / "parts", evaluate_every=5, **{**settings, "steps": 8}).run()
    rest = loop(tmp_path / "parts", evaluate_every=5, **settings)
    rest.run()
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert same(tensors(rest), tensors(whole))
    assert rest.progress.watch == whole.progress.watch


@pytest.mark.parametrize("accumulate", [2, 3, 50])  # 50: more parts than there are examples in a batch
def test_a_step_in_parts_is_a_step(tmp_path, accumulate):
    whole, parts = loop(tmp_path / "whole", steps=1), loop(tmp_path / "parts", steps=1, accumulate=accumulate)
    for made in (whole, parts):
        made.optimiser.step = lambda *given: torch.zeros(())  # so that the gradients stay to be looked at
        made.run()
    theirs = dict(parts.engine.model.named_parameters())
    for name, weight in whole.engine.model.named_parameters():
        torch.testing.assert_close(weight.grad, theirs[name].grad, atol=1e-6, rtol=1e-5)
    assert losses(tmp_path / "parts") == pytest.approx(losses(tmp_path / "whole"), abs=1e-6)


def test_the_loss_is_that_of_each_target(tmp_path):
    """Not a mean of means: the batch's texts are of very unequal length."""
    made = loop(tmp_path / "run", steps=1, accumulate=3)
    made.run()
    task, model = tasks.LanguageModelling(pad=0), small_model().train()
    rows = source(tmp_path / "store").read(numbers_of(tmp_path / "store", 1))
    assert len({len(row["text"]) for row in rows}) > 1
    batch = task.collate(rows, [])
    assert losses(tmp_path / "run") == pytest.approx(
        [float(task.losses(model, batch.tensors)["tokens"].detach()) / sum(len(row["text"]) - 1 for row in rows)],
        abs=1e-6,
    )


def test_nan_stops_it_at_the_step_and_keeps_nothing_of_it(tmp_path):
    made = loop(tmp_path / "run", Ailing(6, float("nan")), save_every=2)
    numbers = ", ".join(map(str, numbers_of(tmp_path / "store", 7)[:3]))
    with pytest.raises(NotANumber, match=rf"^step 7: the loss is nan, in the batch of \d+ examples \({numbers}"):
        made.run()
    assert made.checkpoints.steps() == [4, 6]
    assert steps(tmp_path / "run") == [1, 2, 3, 4, 5, 6]
    well = loop(tmp_path / "run", save_every=2)
    assert well.progress.step == 6
    well.run()
    whole = loop(tmp_path / "whole", save_every=2)
    whole.run()
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")
    assert same(tensors(well), tensors(whole))


def test_nan_is_found_before_a_checkpoint_though_nobody_looks_at_each_step(tmp_path):
    made = loop(tmp_path / "run", Ailing(5, float("inf")), save_every=4, log_every=100)
    with pytest.raises(NotANumber, match=r"^step 6: the loss is inf"):
        made.run()
    assert made.checkpoints.steps() == [4]


def test_nan_of_held_out_text_stops_it_and_keeps_nothing_of_it(tmp_path):
    class Unwell(Ailing):
        def measures(self, model, tensors):
            return {name: value * float("nan") for name, value in super().measures(model, tensors).items()}

    made = loop(tmp_path / "run", Unwell(1000, 0.0), evaluate_every=3, save_every=2)
    with pytest.raises(NotANumber, match=r"^step 3: the loss on held-out text is nan"):
        made.run()
    assert (made.kept, made.checkpoints.steps()) == ([], [2])


def test_divergence_stops_it(tmp_path):
    made = loop(tmp_path / "run", Ailing(EARLY, 100.0), steps=2 * EARLY, save_every=10)
    with pytest.raises(Diverged, match=rf"^step {EARLY + 1}: the loss diverges|^step {EARLY + 2}: the loss diverges"):
        made.run()
    assert made.checkpoints.steps()[-1] == EARLY


def test_after_an_error_who_was_told_of_the_run_is_told_of_its_end(tmp_path):
    ends = []
    with pytest.raises(NotANumber):
        loop(tmp_path / "run", Ailing(2, float("nan")), reporters=[Silent(end=ends.append)]).run()
    assert [told["step"] for told in ends] == [3]


def test_an_error_ends_the_thread_that_reads_ahead(tmp_path):
    with pytest.raises(NotANumber):
        loop(tmp_path / "run", Ailing(2, float("nan"))).run()
    assert "regard-feed" not in {thread.name for thread in threading.enumerate()}


def test_patience_ends(tmp_path):
    made = loop(tmp_path / "run", steps=50, evaluate_every=2, patience=3, learning_rate=1e-30)
    made.run()
    assert (made.progress.step, made.stopped) == (8, "no better for 3 evaluations")
    assert [progress.step for _, progress in made.kept] == [2]
    again = loop(tmp_path / "run", steps=50, evaluate_every=2, patience=3, learning_rate=1e-30)
    again.run()
    assert again.progress.step == 8  # it stays with that
    more = loop(tmp_path / "run", steps=50, evaluate_every=2, patience=4, learning_rate=1e-30)
    more.run()
    assert more.progress.step == 10


def test_patience_that_ends_with_the_last_step_is_not_why_it_stopped(tmp_path):
    made = loop(tmp_path / "run", steps=8, evaluate_every=2, patience=3, learning_rate=1e-30)
    made.run()
    assert (made.progress.step, made.stopped) == (8, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_step_with_a_checkpoint(tmp_path, number):
    before = signal.getsignal(number)
    asking = Silent(step=lambda told: os.kill(os.getpid(), number) if told["step"] == 3 else None)
    made = loop(tmp_path / "run", reporters=[asking], save_every=1000)
    made.run()
    # It is the log of step 3 that asks, after the loop looked whether it was asked to: one step more.
    assert (made.progress.step, made.stopped, made.checkpoints.steps()) == (4, "it was asked to", [4])
    assert signal.getsignal(number) == before
    loop(tmp_path / "run", save_every=1000).run()
    whole = loop(tmp_path / "whole", save_every=1000)
    whole.run()
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")


def test_a_second_interrupt_is_obeyed_at_once(tmp_path):
    def ask(told):
        if told["step"] == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    made = loop(tmp_path / "run", reporters=[Silent(step=ask)], save_every=2)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert made.checkpoints.steps() == [2]


def test_in_a_thread_of_its_own_it_hears_no_signals_and_runs(tmp_path):
    made = loop(tmp_path / "run", steps=3)
    thread = threading.Thread(target=made.run)
    thread.start()
    thread.join()
    assert made.progress.step == 3


def test_minutes(tmp_path):
    made = loop(tmp_path / "run", minutes=0)
    made.run()
    assert (made.progress.step, made.stopped, made.checkpoints.steps()) == (1, "0 minutes are over", [1])


def test_the_last_of_the_held_out_text_is_looked_at_at_the_end(tmp_path):
    made = loop(tmp_path / "run", steps=5, evaluate_every=2)
    made.run()
    assert [line["step"] for line in lines(tmp_path / "run") if line["kind"] == "held-out"] == [2, 4, 5]
    found, progress = made.kept[0]
    assert found.keys() == {"loss", "accuracy"}
    assert progress.best == found["loss"]


def test_held_out_text_is_measured_with_the_mean_of_the_weights(tmp_path):
    made = loop(tmp_path / "run", steps=10, ema=0.5, learning_rate=1e-2)
    made.run()
    now = tensors(made)
    found = made.evaluate()
    assert same(tensors(made), now)  # which are put back
    for name, weight in made.engine.model.named_parameters():
        weight.data.copy_(made.optimiser.means[name])
    made.optimiser.means = {}
    assert made.evaluate() == found
    made.engine.model.load_state_dict({name: now[f"weight.{name}"] for name in dict(made.optimiser.named)})
    assert made.evaluate() != found


def test_a_run_of_another_kind_is_refused(tmp_path):
    loop(tmp_path / "run", steps=4, identity={"width": 16, "text": "a"}).run()
    with pytest.raises(FileError, match=r"another run: width was 16 and is 32\. .*--fresh"):
        loop(tmp_path / "run", identity={"width": 32, "text": "a"})


def test_the_speed_after_a_stop_is_that_of_the_steps_since(tmp_path):
    loop(tmp_path / "run", steps=8).run()
    told = []
    rest = loop(tmp_path / "run", steps=9, reporters=[Silent(step=told.append)])
    before = rest.progress
    rest.run()
    (entry,) = told
    spent = entry["seconds"] - before.seconds
    assert entry["tokens_per_second"] * spent < 3 * (entry["tokens"] - before.tokens)


def test_alone_is_alone():
    assert ALONE.sum([1.0, 2.0]) == [1.0, 2.0]
    assert ALONE.first
