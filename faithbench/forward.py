"""The one engine that runs the network on rows: sorted, packed, each distinct row once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from faithbench.models import Model, inputs_of, pad_rows
from faithbench.types import Floats, Ints

Row = tuple[Ints, Ints]
"""One input: its token ids and its segment ids."""


@dataclass
class Engine:
    """Answers rows with log-probabilities of the classes, and remembers what it computed.

    Rows of all examples are sorted by length and packed under `budget` padded tokens, so
    that short texts fill the machine and long ones are not padded to each other. `asked`
    and `distinct` count rows; a remembered row costs nothing.
    """

    model: Model
    budget: int = 2048
    asked: int = 0
    distinct: int = 0
    _known: dict[bytes, Floats] = field(default_factory=dict)

    def log_probabilities(self, rows: Sequence[Row]) -> Floats:
        """Return ln softmax of the logits: one line per row, one column per class."""
        keys = [_key(row) for row in rows]
        fresh = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._known}
        self.asked += len(rows)
        self.distinct += len(fresh)
        self._compute(list(fresh.items()))
        classes = len(self.model.labels)
        if not rows:
            return np.zeros((0, classes))
        return np.stack([self._known[key] for key in keys])

    def forget(self) -> None:
        """Drop remembered rows: the run does so after each chunk of examples."""
        self._known.clear()

    def _compute(self, rows: list[tuple[bytes, Row]]) -> None:
        # Longest first, so that a device too small for the budget says so at once.
        waiting = sorted(rows, key=lambda item: (-len(item[1][0]), item[0]))
        while waiting:
            count = max(1, self.budget // len(waiting[0][1][0]))
            pack, rest = waiting[:count], waiting[count:]
            try:
                answers = self._forward([row for _, row in pack])
            except torch.OutOfMemoryError:
                if count == 1:
                    raise
                self.budget = max(len(pack[0][1][0]), self.budget // 2)
                torch.cuda.empty_cache()
                continue
            self._known.update(zip((key for key, _ in pack), answers, strict=True))
            waiting = rest

    def _forward(self, rows: list[Row]) -> Floats:
        network = self.model.network
        arrays = pad_rows(rows, int(network.config.pad_token_id))
        ids, types, attention = (torch.tensor(a, device=network.device) for a in arrays)
        with torch.inference_mode():
            logits = network(**inputs_of(network, ids, types, attention)).logits
        self.model.meter.charge(forwards=len(rows))
        answers: Floats = torch.log_softmax(logits.double().cpu(), dim=-1).numpy()
        return answers


def _key(row: Row) -> bytes:
    ids, types = row
    return ids.tobytes() + types.tobytes()
