"""Attributions as captum, shap and inseq give them, made into pieces of text with scores.

None of these libraries is imported: what they return is read by its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.pieces import ScoredPieces

if TYPE_CHECKING:
    from faithbench.core.types import Floats


def from_captum(attributions: Any, tokens: Sequence[Sequence[str]]) -> tuple[ScoredPieces, ...]:
    """Return what captum gave for each text, to be scored by `score`.

    `attributions` is a tensor [texts, tokens] or [texts, tokens, width], or a list of one tensor
    per text; the width of embeddings is summed. `tokens` has the tokens of each text, special
    tokens and padding included, as `convert_ids_to_tokens` returns them.
    """
    if len(attributions) != len(tokens):
        raise FaithbenchError(
            f"captum's attributions are of {len(attributions)} texts, the tokens of {len(tokens)}; "
            "give a list of tokens for each text"
        )
    return tuple(
        _of_tokens(number, _numbers(table), tuple(words))
        for number, (table, words) in enumerate(zip(attributions, tokens, strict=True))
    )


def _of_tokens(number: int, table: Floats, tokens: tuple[str, ...]) -> ScoredPieces:
    if table.ndim > 1 and len(table) == 1 and len(tokens) != 1:
        table = table[0]  # a batch of one text
    if table.ndim not in (1, 2) or len(table) != len(tokens):
        raise FaithbenchError(
            f"captum's attributions of text {number} have shape {table.shape} for {len(tokens)} "
            "tokens; give one row per token"
        )
    return ScoredPieces(tokens, table if table.ndim == 1 else table.sum(1))


def from_shap(explanation: Any) -> tuple[ScoredPieces, ...]:
    """Return what shap gave for each text, to be scored by `score`.

    `explanation` is a `shap.Explanation` of texts, made with `shap.maskers.Text`; of values for
    several classes, `score` takes those of the class that the model predicts.
    """
    values, data = _read(explanation, "values", "shap"), _read(explanation, "data", "shap")
    if len(data) and isinstance(data[0], str):
        values, data = [values], [data]  # one text, as explanation[0] is
    texts = []
    for number, (table, pieces) in enumerate(zip(values, data, strict=True)):
        if isinstance(pieces, str) or not all(isinstance(piece, str) for piece in pieces):
            raise FaithbenchError(
                f"shap's data of text {number} are not pieces of text; make the explanation with "
                "shap.maskers.Text"
            )
        texts.append(ScoredPieces(tuple(map(str, pieces)), _numbers(table)))
    return tuple(texts)


def from_inseq(output: Any) -> tuple[ScoredPieces, ...]:
    """Return what inseq gave for each text, to be scored by `score`.

    `output` is a `FeatureAttributionOutput`, or one of its sequences, aggregated to one number per
    pair of tokens (`output.aggregate()`). An input token's score is the sum over all generated
    tokens; of a model without an encoder, the input is what came before them.
    """
    sequences = getattr(output, "sequence_attributions", [output])
    return tuple(_of_sequence(number, sequence) for number, sequence in enumerate(sequences))


def _of_sequence(number: int, sequence: Any) -> ScoredPieces:
    source = _read(sequence, "source_attributions", "inseq")
    if source is not None:
        table, tokens = _numbers(source), _read(sequence, "source", "inseq")
    else:
        prompt = _read(sequence, "attr_pos_start", "inseq")
        table = _numbers(_read(sequence, "target_attributions", "inseq"))[:prompt]
        tokens = _read(sequence, "target", "inseq")[:prompt]
    if table.ndim != 2:
        raise FaithbenchError(
            f"inseq's attributions of text {number} have shape {table.shape}, not one number per "
            "input and generated token; call output.aggregate() first"
        )
    return ScoredPieces(tuple(str(token.token) for token in tokens), table.sum(1))


def _read(value: Any, name: str, tool: str) -> Any:
    if not hasattr(value, name):
        raise FaithbenchError(f"a {type(value).__name__} has no {name}; give what {tool} returned")
    return getattr(value, name)


def _numbers(values: Any) -> Floats:
    """Return an array or a tensor of any device as float64."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise FaithbenchError(f"these attributions are not numbers: {error}") from error
