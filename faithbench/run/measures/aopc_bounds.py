"""The best and worst AOPC that an input allows: a property of model and input alone."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from faithbench.core.erasure import Operator, top_count
from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason
from faithbench.core.seals import seal, unseal
from faithbench.core.types import Bools, Encoding, Floats, Ints
from faithbench.data.kinds.kind import Prediction
from faithbench.data.windows import erased_rows
from faithbench.metrics.faithfulness import DECILES
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import evaluate_inputs

WIDTH = 5
"""Number of sets that a beam keeps."""
MOST_UNITS = 40
"""Longest input, in tokens, that is erased token by token."""
SPANS = 20
"""Number of spans that a longer input is erased by."""
VERSION = 1
"""Version of the search, part of the key under which bounds are cached."""


@dataclass(frozen=True)
class _State:
    """Some units erased: the sum of drops at the deciles passed, and the drop now."""

    erased: frozenset[int]
    total: float
    fall: float


def aopc_bounds(
    engine: Engine, encoding: Encoding, prediction: Prediction, operator: Operator
) -> tuple[float, float] | None:
    """Return the lowest and highest AOPC of the orders that two beam searches find.

    Tokens are erased one at a time, the WIDTH best sets kept; inputs of more than MOST_UNITS
    erasable tokens are erased by SPANS spans of equal length. The idea is that of normalised
    AOPC (Edin et al., 2025). None where nothing may be erased.
    """
    positions = engine.model.kind.erasable(encoding, prediction.target)
    if not len(positions):
        return None
    units = [positions[i : i + 1] for i in range(len(positions))]
    if len(units) > MOST_UNITS:
        units = list(np.array_split(positions, SPANS))
    search = _Search(engine, encoding, prediction, operator, units)
    return search.best(-1), search.best(+1)


@dataclass(frozen=True)
class _Search:
    engine: Engine
    encoding: Encoding
    prediction: Prediction
    operator: Operator
    units: list[Ints]

    def best(self, sign: int) -> float:
        """Return the AOPC of the best order found, or of the worst with a sign of -1."""
        # AOPC is a mean over deciles. In short inputs several deciles erase the same number of
        # units, whose drop then counts that many times.
        weights = Counter(top_count(len(self.units), k) for k in DECILES)
        beam = [_State(frozenset(), 0.0, 0.0)]
        for count in range(1, max(weights) + 1):
            parents: dict[frozenset[int], float] = {}
            for state in beam:
                for unit in set(range(len(self.units))) - state.erased:
                    # Different orders reach the same set. Its rows, and all rows after it, do
                    # not depend on the order, so only the best total so far is kept.
                    grown = state.erased | {unit}
                    known = parents.get(grown, state.total)
                    parents[grown] = sign * max(sign * state.total, sign * known)
            falls = self._falls(list(parents))
            grown_states = [
                _State(erased, total + weights[count] * fall, fall)
                for (erased, total), fall in zip(parents.items(), falls, strict=True)
            ]
            # Sets are ranked by their total plus the drop now, which says most about the next
            # deciles; ties go to the set of earlier units, so that every machine agrees.
            grown_states.sort(key=lambda s: (-sign * (s.total + s.fall), sorted(s.erased)))
            beam = grown_states[:WIDTH]
        return float(max(sign * state.total for state in beam) * sign / len(DECILES))

    def _falls(self, sets: Sequence[frozenset[int]]) -> Floats:
        token_id = self.engine.model.erasure_id(self.operator)
        rows = [
            erased_rows(self.encoding, self._keep(erased), self.operator, token_id)
            for erased in sets
        ]
        count = len(rows)
        answers = evaluate_inputs(
            self.engine, rows, [self.encoding] * count, [self.prediction.target] * count
        )
        return math.exp(self.prediction.log_probability) - answers.probability

    def _keep(self, erased: frozenset[int]) -> Bools:
        keep = np.ones(len(self.encoding.ids), dtype=bool)
        for unit in erased:
            keep[self.units[unit]] = False
        return keep


def read_bounds(folder: Path, model: Model) -> dict[str, tuple[float, float]]:
    """Return the bounds kept next to results; a line that is torn or damaged is skipped."""
    path = _bounds_path(folder, model)
    known: dict[str, tuple[float, float]] = {}
    if path.exists():
        for line in unseal(path.read_bytes()).lines:
            try:
                key, low, high = msgspec.json.decode(line, type=tuple[str, float, float])
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # whole, and yet not ours: the search is done again
            known[key] = (low, high)
    return known


def append_bounds(folder: Path, model: Model, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Keep bounds next to results, one line per input, for later runs of the same model."""
    if not bounds:
        return
    path = _bounds_path(folder, model)
    lines = b"".join(
        seal(json.dumps([key, *pair]).encode() + b"\n") for key, pair in bounds.items()
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes() if path.exists() else b""
        good = unseal(data).good
        end = b"\n" if unseal(data[good:] + b"\n").lines else b""  # a line that lacks no more
        with path.open("ab") as file:
            if not end:
                file.truncate(good)  # without the half line of a run that was killed
            file.write(end + lines)
    except OSError as error:
        raise FaithbenchError(
            f"cannot keep bounds at {path}: {reason(error)}; "
            "fix that or choose another folder with --results"
        ) from error


def _bounds_path(folder: Path, model: Model) -> Path:
    return folder / f"bounds-{model.sha256[:12]}.jsonl"


def bounds_key(model: Model, encoding: Encoding, prediction: Prediction, operator: Operator) -> str:
    """Digest all that the bounds of an input depend on."""
    facts = [
        VERSION, model.sha256, str(model.dtype), encoding.ids.tolist(),
        encoding.types.tolist(), np.flatnonzero(encoding.erasable).tolist(),
        prediction.target, operator,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
