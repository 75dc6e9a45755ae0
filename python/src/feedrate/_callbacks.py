"""Callbacks that watch the training loops of Lightning and Keras."""

from __future__ import annotations

import sys
from time import perf_counter_ns as clock
from typing import Any, Optional

from ._optional import import_optional
from ._watch import StrPath, _Epoch, _Log, _log


def lightning_callback(
    *, name: Optional[str] = None, results: StrPath = "results", batch: Optional[int] = None, data: Optional[StrPath] = None, synchronise: bool = True
) -> Any:
    """A callback for Lightning: `Trainer(callbacks=[feedrate.lightning_callback()])`. It takes the arguments of `watch`.

    The time of validation counts neither as load nor as compute.
    """
    # Uses the name under which the script imported the library.
    library = "pytorch_lightning" if "pytorch_lightning" in sys.modules else "lightning.pytorch"
    base = import_optional(library).Callback
    steps = _Steps(_log(name, _caller_location(), results, batch, data, synchronise))

    class Lightning(base):  # type: ignore[misc, valid-type]
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            steps.begin(trainer.train_dataloader)

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
            steps.batch_received(batch)

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            steps.step_finished()

        def on_validation_start(self, trainer: Any, module: Any) -> None:
            steps.pause()

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            steps.resume()

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            steps.end()

    return Lightning()


def keras_callback(
    *, name: Optional[str] = None, results: StrPath = "results", batch: Optional[int] = None, data: Optional[StrPath] = None, synchronise: bool = True
) -> Any:
    """A callback for Keras: `model.fit(…, callbacks=[feedrate.keras_callback()])`. It takes the arguments of `watch`.

    Raises ValueError if Keras runs on TensorFlow: there, the training step fetches its batch itself, so no callback sees the end of loading.
    """
    keras = import_optional("keras")
    if keras.backend.backend() == "tensorflow":
        message = "on TensorFlow, the training step of Keras fetches its batch itself, so a callback cannot distinguish load from compute"
        raise ValueError(f"{message}\n  hint: write the loop yourself: `for x, y in feedrate.watch(dataset): model.train_on_batch(x, y)`")
    steps = _Steps(_log(name, _caller_location(), results, batch, data, synchronise))

    class Keras(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            steps.begin("keras.Model.fit")

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            steps.batch_received(None)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            steps.step_finished()

        def on_test_begin(self, logs: Any = None) -> None:
            steps.pause()

        def on_test_end(self, logs: Any = None) -> None:
            steps.resume()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            steps.end()

    return Keras()


def _caller_location() -> tuple[str, int]:
    frame = sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


class _Steps:
    """Steps of a loop that reports when it receives a batch and when it has processed the batch."""

    def __init__(self, log: _Log) -> None:
        self.log = log
        self.epoch: Optional[_Epoch] = None
        self.requested_at = self.received_at = self.paused_at = 0

    def begin(self, loader: Any) -> None:
        self.end()
        self.epoch = self.log.begin(loader)
        self.synchronise = self.log.synchronise()
        self.epoch.start = self.requested_at = clock()
        self.received_at = 0

    def batch_received(self, batch: Any) -> None:
        self.received_at = clock()
        if batch is not None:
            self.log.inspect_batch(batch)

    def step_finished(self) -> None:
        epoch = self.epoch
        if epoch is None or not self.received_at:
            return
        if self.synchronise is not None:
            self.synchronise()
        now = clock()
        epoch.load.append(self.received_at - self.requested_at)
        epoch.compute.append(now - self.received_at - epoch.paused)
        if epoch.paused:
            epoch.end_block(now)
        self.requested_at, self.received_at = now, 0
        if self.log.due < now:
            self.requested_at = self.log.flush_within(epoch, now)
        if len(epoch.compute) == 1:
            self.synchronise = self.log.synchronise()

    def pause(self) -> None:
        """Starts a pause between two steps."""
        self.paused_at = clock()

    def resume(self) -> None:
        if self.epoch is None or not self.paused_at:
            return
        pause_ns, self.paused_at = clock() - self.paused_at, 0
        # A pause ends a block, like a checkpoint.
        self.epoch.blocks.append((len(self.epoch.compute), pause_ns))
        self.requested_at += pause_ns

    def end(self) -> None:
        if self.epoch is not None:
            epoch, self.epoch = self.epoch, None
            self.log.end(epoch, self.requested_at, self.requested_at)
