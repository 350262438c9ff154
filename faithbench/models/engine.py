"""The one engine that runs the network on rows: sorted, packed, each distinct row once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Floats, Ints, TokenRow
from faithbench.models.devices import send
from faithbench.models.encoding import inputs_of, pad_rows
from faithbench.models.fast_encoder import FastEncoder, fast_encoder
from faithbench.models.meter import Meter
from faithbench.models.model import Model
from faithbench.models.traits import Group, row_groups

BUDGET = 2048
"""Padded tokens per pass: enough to fill two cores, little enough to keep padding small."""


@dataclass
class Engine:
    """Computes class log-probabilities of rows, and caches them.

    Rows of all examples are sorted by length and packed into passes of at most `budget` padded
    tokens, so that short texts fill the machine and long ones are not padded to each other. Where
    a network asks for it, a pass has rows of one length, or of as many end tokens.
    `asked` counts the rows of all calls, `distinct` those that were computed. The meter is
    charged for each distinct row of a call, cached ones included with their seconds, so that
    the cost of an explainer does not depend on the calls before it. The network must not change
    while an engine lives: cached rows and packed weights would be stale.
    """

    model: Model
    budget: int = BUDGET
    meter: Meter = field(default_factory=Meter)
    asked: int = 0
    distinct: int = 0
    _known: dict[bytes, Floats] = field(default_factory=dict)
    _seconds: dict[bytes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._group_of = row_groups(self.model.network)

    @cached_property
    def _fast(self) -> FastEncoder | None:
        encoder = fast_encoder(self.model)
        if encoder is None and self.model.compiled:
            kind = self.model.network.config.model_type
            raise FaithbenchError(
                f"a {kind} model in {str(self.model.dtype).removeprefix('torch.')} has no pass "
                "that is compiled here; leave --compiled out"
            )
        return encoder

    @cached_property
    def differentiable(self) -> FastEncoder | None:
        """Return a fast forward pass that passes gradients, or None if there is none."""
        return fast_encoder(self.model, differentiable=True)

    def log_probabilities(self, rows: Sequence[TokenRow], output: str = "logits") -> Floats:
        """Return ln softmax of an output: one line per row, one column per class.

        The classes of a question answerer's outputs are token positions, up to the model's
        longest input; positions that a row does not have are -inf. The row of a choice has one
        column, its logit.
        """
        reads_nothing = getattr(self.model.network.config, "reads_nothing", False)
        if not reads_nothing and any(len(ids) == 0 for ids, _ in rows):
            raise FaithbenchError(
                f"model {self.model.name!r} was given an input without tokens; "
                "erase with --operator mask, which leaves none empty"
            )
        keys = [_key(row) for row in rows]
        fresh = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._known}
        self.asked += len(rows)
        self.distinct += len(fresh)
        spared = sum(self._seconds[key] for key in set(keys) - set(fresh))
        self.meter.charge(forwards=len(set(keys)), passes=0, shared_seconds=spared)
        self._compute(list(fresh.items()))
        kind = self.model.kind
        width = self.model.max_tokens if kind.per_position else len(self.model.labels)
        width = 1 if kind.has_choices else width
        if not rows:
            return np.zeros((0, width))
        first = kind.outputs.index(output) * width
        return np.stack([self._known[key] for key in keys])[:, first : first + width]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Neither use nor leave anything in the cache inside.

        The last bits of a row depend on the pass that it shares with others. What may be computed
        or not, such as a search whose result an earlier run has kept, must not decide which rows
        the next call still has to compute.
        """
        known, seconds = self._known, self._seconds
        self._known, self._seconds = {}, {}
        try:
            yield
        finally:
            self._known, self._seconds = known, seconds

    def forget(self) -> None:
        """Empty the cache; the run does so after each chunk of examples."""
        self._known.clear()
        self._seconds.clear()

    def _compute(self, rows: list[tuple[bytes, TokenRow]]) -> None:
        """Run all passes, and only then wait for their logits: one copy brings them all."""
        if not rows:
            return
        start = time.perf_counter()
        groups: dict[Group, list[tuple[bytes, TokenRow]]] = {}
        for key, row in rows:
            groups.setdefault(self._group_of(row[0]), []).append((key, row))
        keys: list[bytes] = []
        passes: list[torch.Tensor] = []
        for group in groups.values():
            self._run_group(group, keys, passes)
        answers = self._log_probabilities(torch.cat(passes).cpu().double())
        self._known.update(zip(keys, answers, strict=True))
        # Passes overlap on a GPU, so none has a time of its own: a row's share is its tokens'.
        sizes = {key: max(1, len(ids)) for key, (ids, _) in rows}
        each = (time.perf_counter() - start) / sum(sizes.values())
        self._seconds.update((key, each * size) for key, size in sizes.items())

    def _run_group(
        self, rows: list[tuple[bytes, TokenRow]], keys: list[bytes], passes: list[torch.Tensor]
    ) -> None:
        """Run rows that may share passes; add their keys, and the logits in the same order."""
        # Longest first: a device too small for the budget fails at the first pack, not the last.
        waiting = sorted(rows, key=lambda item: (-len(item[1][0]), item[0]))
        while waiting:
            count = max(1, self.budget // max(1, len(waiting[0][1][0])))
            pack, rest = waiting[:count], waiting[count:]
            try:
                order, logits = self._forward([row for _, row in pack])
            except torch.OutOfMemoryError:
                if count == 1:
                    raise
                # Half the budget from now on, but always room for one row of this length.
                self.budget = max(len(pack[0][1][0]), self.budget // 2)
                torch.cuda.empty_cache()
                continue
            keys.extend(pack[index][0] for index in order)
            passes.append(logits)
            waiting = rest

    def _forward(self, rows: list[TokenRow]) -> tuple[Ints, torch.Tensor]:
        """Return the logits of rows, outputs side by side, and which row each line is of.

        They are still on the device: nothing here waits for it.
        """
        network = self.model.network
        self.meter.charge(passes=1)
        with torch.inference_mode():
            if self._fast is not None:
                pack = self._fast.pack(rows)
                return pack.order, self._fast(pack)
            arrays = pad_rows(rows, int(network.config.pad_token_id))
            ids, types, attention = send(arrays, network.device)
            out = network(**inputs_of(network, ids, types, attention))
            outputs = [getattr(out, name) for name in self.model.outputs]
            if self.model.kind.per_position:
                # Padding is no position, and all rows are as wide as the longest input.
                padding, missing = attention == 0, self.model.max_tokens - ids.shape[1]
                outputs = [
                    F.pad(output.masked_fill(padding, -torch.inf), (0, missing), value=-torch.inf)
                    for output in outputs
                ]
            return np.arange(len(rows)), torch.cat(outputs, dim=1)

    def _log_probabilities(self, logits: torch.Tensor) -> Floats:
        """Turn the logits of all outputs, side by side, into log-probabilities of each."""
        kind = self.model.kind
        parts = logits.chunk(len(self.model.outputs), dim=1)
        table: Floats = torch.cat([kind.log_probabilities(part) for part in parts], dim=1).numpy()
        return table


def _key(row: TokenRow) -> bytes:
    # Both halves have one length, so ids of one row cannot pass for types of another.
    ids, types = row
    return ids.tobytes() + types.tobytes()
