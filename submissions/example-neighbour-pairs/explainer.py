from dataclasses import dataclass

import numpy as np

from faithbench import explainer, per_example


@explainer("example-neighbour-pairs")
@per_example
@dataclass(frozen=True)
class NeighbourPairs:
    """Score a token by how far the probability falls without it, alone and with a neighbour."""

    def __call__(self, probs, example):
        n = len(example.tokens)
        alone = ~np.eye(n, dtype=bool)
        with_left = alone & np.roll(alone, -1, axis=1)  # row i leaves out i - 1 and i
        full = probs(np.ones((1, n), bool))[0]
        single, left = full - probs(np.vstack([alone, with_left])).reshape(2, n)
        left[0] = single[0]  # at the ends there is one neighbour less
        right = np.append(left[1:], single[-1])
        return (single + left + right) / 3
