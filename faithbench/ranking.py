"""The one ranking of scores: every metric and every device agree on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def rank(scores: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Return indices by descending score; ties go to the earlier one."""
    return np.argsort(-scores, kind="stable").astype(np.int64)
