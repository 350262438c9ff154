"""What captum, shap and inseq return, read by its attributes."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import shap
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.other_tools import from_captum, from_inseq, from_shap

TOKENS = [["[CLS]", "good", "[SEP]"], ["[CLS]", "bad", "[SEP]"]]


@dataclass
class TokenWithId:
    """As inseq has it."""

    token: str
    id: int


def sequence(**members: Any) -> SimpleNamespace:
    return SimpleNamespace(source_attributions=None, target_attributions=None, **members)


def words(*tokens: str) -> list[TokenWithId]:
    return [TokenWithId(token, number) for number, token in enumerate(tokens)]


def test_captum_sums_over_the_width_of_embeddings() -> None:
    table = torch.arange(24.0, requires_grad=True).reshape(2, 3, 4)
    first, second = from_captum(table, TOKENS)
    assert first.pieces == ("[CLS]", "good", "[SEP]")
    assert first.scores.tolist() == [6, 22, 38] and second.scores.tolist() == [54, 70, 86]
    assert from_captum(table.sum(2), TOKENS)[1].scores.tolist() == [54, 70, 86]
    one_by_one = from_captum([table[:1], table[1:]], TOKENS)  # each call of captum is a batch
    assert [one.scores.tolist() for one in one_by_one] == [[6, 22, 38], [54, 70, 86]]


def test_captums_tokens_have_a_row_each() -> None:
    with pytest.raises(FaithbenchError, match=r"of text 0 have shape \(4,\) for 3 tokens"):
        from_captum(torch.ones(2, 4), TOKENS)
    with pytest.raises(FaithbenchError, match="are of 1 texts, the tokens of 2"):
        from_captum(torch.ones(1, 3), TOKENS)


def test_shap_keeps_a_column_for_each_class() -> None:
    values = np.array([np.ones((2, 2)), np.zeros((3, 2))], dtype=object)
    data = (np.array(["good ", "film"]), np.array(["", "bad ", "film"]))
    explanation = shap.Explanation(values=values, data=data)
    first, second = from_shap(explanation)
    assert first.pieces == ("good ", "film") and first.scores.tolist() == [[1, 1], [1, 1]]
    assert second.pieces == ("", "bad ", "film") and second.scores.shape == (3, 2)
    (one,) = from_shap(explanation[0])
    assert one.pieces == ("good ", "film") and one.scores.tolist() == [[1, 1], [1, 1]]


def test_shap_of_no_texts_is_refused() -> None:
    explanation = shap.Explanation(values=np.ones((2, 3)), data=np.ones((2, 3)))
    with pytest.raises(FaithbenchError, match="shap's data of text 0 are not pieces of text"):
        from_shap(explanation)
    with pytest.raises(FaithbenchError, match="a ndarray has no values; give what shap returned"):
        from_shap(np.ones(3))


def test_inseq_adds_what_the_generated_tokens_got() -> None:
    encoder = sequence(
        source=words("\u2581good", "\u2581film", "</s>"), target=words("yes", "</s>")
    )
    encoder.source_attributions = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    decoder = sequence(target=words("good", "film", "yes"), attr_pos_start=2)
    # What a token that was generated gives itself is not there: NaN.
    decoder.target_attributions = torch.tensor([[1.0], [2.0], [torch.nan]])
    output = SimpleNamespace(sequence_attributions=[encoder, decoder])
    first, second = from_inseq(output)
    assert first.pieces == ("\u2581good", "\u2581film", "</s>")
    assert first.scores.tolist() == [3, 7, 11]
    assert second.pieces == ("good", "film") and second.scores.tolist() == [1, 2]
    (alone,) = from_inseq(encoder)
    assert alone.scores.tolist() == [3, 7, 11]


def test_inseq_is_aggregated_by_the_user() -> None:
    one = sequence(source=words("good"), target=words("yes"))
    one.source_attributions = torch.ones(1, 1, 8)
    with pytest.raises(FaithbenchError, match=r"have shape \(1, 1, 8\).*output.aggregate\(\)"):
        from_inseq(one)
