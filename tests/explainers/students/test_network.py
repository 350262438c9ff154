"""The student's network: where tags stand, what padding changes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from faithbench.explainers.students.network import Student, StudentShape, sinusoids

SHAPE = {"width": 8, "feedforward": 12, "blocks": 2, "heads": 2, "vocabulary": 20}


def student(embeddings: str = "frozen", outputs: int = 5) -> Student:
    torch.manual_seed(0)
    shape = StudentShape(**SHAPE, embeddings=embeddings, vector_width=6, classes=3, outputs=outputs)
    return Student(shape).double().eval()


def test_positions_are_sines_and_cosines() -> None:
    table = sinusoids(5, 4).numpy()
    angles = np.arange(5)[:, None] * np.array([1.0, 0.01])[None, :]
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(5, 4)
    np.testing.assert_allclose(table, expected, atol=1e-6)


@pytest.mark.parametrize("embeddings", ["frozen", "random"])
def test_the_last_tag_stands_before_the_padding(embeddings: str) -> None:
    """A short text has the same outputs alone and padded, tags included."""
    network = student(embeddings)
    vectors = torch.nn.Embedding(20, 6).double()
    ids = torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 1]])
    attention = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    zeros = torch.zeros_like(ids)
    targets = torch.tensor([2, 1])
    both = network(vectors, ids, zeros, attention, targets)
    assert both.shape == (2, 7, 5)
    alone = network(vectors, ids[:1, :3], zeros[:1, :3], attention[:1, :3], targets[:1])
    torch.testing.assert_close(both[0, :5], alone[0])
    assert (network.vectors is None) == (embeddings == "frozen")


def test_outputs_depend_on_the_predicted_class_and_the_segments() -> None:
    network = student()
    vectors = torch.nn.Embedding(20, 6).double()
    ids = torch.tensor([[3, 4, 5]])
    ones = torch.ones_like(ids)

    def outputs(types: torch.Tensor, target: int) -> torch.Tensor:
        return network(vectors, ids, types, ones, torch.tensor([target]))

    first = outputs(0 * ones, 0)
    assert not torch.allclose(first, outputs(0 * ones, 1))
    assert not torch.allclose(first, outputs(ones, 0))
    assert torch.equal(outputs(ones, 0), outputs(3 * ones, 0)), "there are two segments"


def test_word_vectors_count_by_direction_not_by_length() -> None:
    network = student()
    vectors = torch.nn.Embedding(20, 6).double()
    ids = torch.tensor([[3, 4, 5]])
    rest = (torch.zeros_like(ids), torch.ones_like(ids), torch.tensor([0]))
    scaled = network(lambda i: 3 * vectors(i), ids, *rest)
    torch.testing.assert_close(network(vectors, ids, *rest), scaled, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("changes", [{"width": 9}, {"heads": 3}, {"blocks": 0}, {"depth": 1}])
def test_shapes_that_are_none(changes: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        StudentShape(**{**SHAPE, "vector_width": 6, "classes": 2, "outputs": 5, **changes})
