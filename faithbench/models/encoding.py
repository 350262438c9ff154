"""From examples to the network's inputs: tokens, words and padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Encoding, Evidence, Example, Ints, Long, Span, Target
from faithbench.data.windows import cut_windows, row_of_choice
from faithbench.data.words import word_spans, words_of_tokens
from faithbench.models.devices import send
from faithbench.models.model import Model
from faithbench.models.traits import has_decoder, reads_segments

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def encode(
    model: Model, example: Example, evidence: Evidence = "text", long: Long = "truncate"
) -> Encoding:
    """Tokenise one example, mark its erasable tokens, and map tokens to words.

    A pair is read in order, except that a question comes before the text it is about, as in
    the training of all published question answerers. A text that is too long is cut, or read
    in windows. An example with choices gets a joint encoding: a window per choice.
    """
    if model.kind.has_choices:
        return _encode_choices(model, example, evidence)
    pair = () if example.text_b is None else (example.text_b,)
    asks = pair != () and model.kind.second_first
    texts = (*pair, example.text) if asks else (example.text, *pair)
    cut_first: str | bool = "only_second" if asks else "only_first"
    cut_first = cut_first if evidence == "text" else "longest_first"
    tokens = _tokenise(model, example.id, texts, False if long == "window" else cut_first)
    first = tokens.encodings[0]
    # With stride 0, each overflowing piece holds text that the model will not read; of a pair,
    # it repeats the second text.
    cut = sum(int((_sides(e, asks) == 0).sum()) for e in tokens.encodings[1:])
    sides = _sides(first, asks)
    allowed = {"text": (0,), "text_b": (1,), "both": (0, 1)}[evidence]
    spans_a, spans_b = word_spans(example.text), word_spans(example.text_b or "")
    words_a = words_of_tokens(first.offsets, spans_a)
    words_b = words_of_tokens(first.offsets, spans_b)
    words_b = np.where(words_b >= 0, words_b + len(spans_a), -1)
    ids = ids_of_text(model.tokenizer, first.ids, first.special_tokens_mask)
    windows: tuple[Ints, ...] = ()
    if len(ids) > model.max_tokens:
        fixed, text = np.flatnonzero(sides != 0), np.flatnonzero(sides == 0)
        windows = cut_windows(fixed, text, model.max_tokens, example.id)
    encoding = Encoding(
        example=example,
        ids=ids,
        types=np.array(first.type_ids, dtype=np.int64),
        erasable=np.isin(sides, allowed),
        words=np.select([sides == 0, sides == 1], [words_a, words_b], -1),
        spans=tuple(first.offsets),
        word_spans=spans_a + spans_b,
        truncated=cut if pair == () or evidence == "text" else int(len(tokens.encodings) > 1),
        windows=windows,
    )
    _check_readable(model, encoding)
    return encoding


def _encode_choices(model: Model, example: Example, evidence: Evidence) -> Encoding:
    """Tokenise the text with each choice, and lay the rows out with the text in common.

    The second text of a row is the choice, after the question where there is one, as published
    models of RACE read them. A text that is too long is cut for all choices alike, where the
    longest of them leaves off. Tokens of choices have no word, and are never erased.
    """
    if not example.choices:
        raise FaithbenchError(
            f"example {example.id!r} has no choices, which model {model.name!r} needs; "
            "give them as a list in its field 'choices'"
        )
    question = "" if example.text_b is None else f"{example.text_b} "
    pieces = [
        _tokenise(model, example.id, (example.text, question + choice), "only_first").encodings
        for choice in example.choices
    ]
    kept = min(_sides(piece[0], False).tolist().count(0) for piece in pieces)
    cut = max(sum(int((_sides(more, False) == 0).sum()) for more in p[1:]) for p in pieces)
    rows = [_row_with_choice(model, piece[0], kept, len(question)) for piece in pieces]
    first, shared = rows[0], rows[0].shared
    if any(not np.array_equal(row.ids[:shared], first.ids[:shared]) for row in rows):
        raise FaithbenchError(
            f"example {example.id!r}: model {model.name!r} reads its text differently with each "
            "choice; begin the choices with a letter or a digit"
        )
    ends = shared + np.cumsum([len(row.ids) - shared for row in rows])
    own = [np.arange(end - len(row.ids) + shared, end) for row, end in zip(rows, ends, strict=True)]
    spans_a, spans_b = word_spans(example.text), word_spans(example.text_b or "")
    words_a = words_of_tokens(first.spans[:shared], spans_a)
    words_b = words_of_tokens(first.spans[:shared], spans_b)
    words_b = np.where(words_b >= 0, words_b + len(spans_a), -1)
    sides = np.concatenate([first.sides[:shared], np.full(ends[-1] - shared, -1)])
    free = int(ends[-1]) - shared
    encoding = Encoding(
        example=example,
        ids=np.concatenate([first.ids[:shared], *(row.ids[shared:] for row in rows)]),
        types=np.concatenate([first.types[:shared], *(row.types[shared:] for row in rows)]),
        erasable=np.isin(sides, {"text": (0,), "text_b": (1,), "both": (0, 1)}[evidence]),
        words=np.select(
            [sides == 0, sides == 1], [np.pad(w, (0, free)) for w in (words_a, words_b)], -1
        ),
        spans=(*first.spans[:shared], *((0, 0) for _ in range(free))),
        word_spans=spans_a + spans_b,
        truncated=cut,
        windows=tuple(np.concatenate([np.arange(shared), places]) for places in own),
        joint=True,
    )
    _check_readable(model, encoding)
    return encoding


@dataclass(frozen=True)
class _ChoiceRow:
    """A row that reads one choice; the first `shared` tokens are the same for all choices."""

    ids: Ints
    types: Ints
    sides: np.ndarray[Any, Any]
    spans: list[Span]
    shared: int


def _row_with_choice(model: Model, piece: Any, kept: int, question: int) -> _ChoiceRow:
    """Return a row with the first `kept` tokens of the text; `question` counts its characters."""
    sides = _sides(piece, False)
    stays = np.flatnonzero((sides != 0) | (np.cumsum(sides == 0) <= kept))
    offsets = [piece.offsets[i] for i in stays]
    sides = sides[stays]
    # The space between question and choice may belong to the choice's first token.
    of_choice = [s == 1 and end > question for s, (_, end) in zip(sides, offsets, strict=True)]
    return _ChoiceRow(
        ids=ids_of_text(model.tokenizer, piece.ids, piece.special_tokens_mask)[stays],
        types=np.array(piece.type_ids, dtype=np.int64)[stays],
        sides=sides,
        spans=offsets,
        shared=of_choice.index(True),
    )


def _tokenise(model: Model, name: str, texts: tuple[str, ...], truncation: str | bool) -> Any:
    try:
        return model.tokenizer(
            *texts,
            truncation=truncation,
            max_length=model.max_tokens,
            split_special_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
            return_overflowing_tokens=True,
        )
    except Exception as error:  # tokenizers raises nothing narrower
        if "Truncation error" not in str(error):
            raise
        raise FaithbenchError(
            f"example {name!r}: its second text leaves no room for the first within the "
            f"{model.max_tokens} tokens of model {model.name!r}; shorten it"
        ) from error


def ids_of_text(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], added: Sequence[int]
) -> Ints:
    """Return token ids in which no special token stands for words of the text itself.

    `added` marks the special tokens that the tokenizer put around the text. Called with
    `split_special_tokens`, it reads a literal "[SEP]" as any other characters; but where the
    marker is also an entry of the vocabulary (Unigram, white-space words), it comes out whole.
    It is then an unknown piece: the network would take it for the end of the text.
    """
    unknown = tokenizer.unk_token_id
    markers = set(tokenizer.all_special_ids) - {unknown}
    array = np.array(ids, dtype=np.int64)
    spelt = np.isin(array, list(markers)) & (np.array(added, dtype=np.int64) == 0)
    if not spelt.any():
        return array
    if unknown is None:
        raise FaithbenchError(
            f"a text spells {tokenizer.convert_ids_to_tokens(int(array[spelt][0]))!r}, which this "
            "tokenizer reads as a special token, and it has no unknown token; leave the text out"
        )
    return np.where(spelt, int(unknown), array)


def _sides(piece: Any, reversed_pair: bool) -> np.ndarray[Any, Any]:
    """Return for each token 0 if it is of the text, 1 if of text_b, -1 if it is special."""
    order = (1, 0) if reversed_pair else (0, 1)
    return np.array([-1 if s is None else order[s] for s in piece.sequence_ids])


def _check_readable(model: Model, encoding: Encoding) -> None:
    """Refuse a text without a single token that the model knows, or without the end it reads."""
    config = model.network.config
    # Classifiers with a decoder read the state of the last end token, which tokenizers put there.
    reads_end = has_decoder(model.network) and model.kind.has_classes
    if reads_end and config.eos_token_id not in encoding.ids:
        raise FaithbenchError(
            f"model {model.name!r} is a {config.model_type} classifier, which reads the end token "
            f"(id {config.eos_token_id}), and its tokenizer adds none to a text; save the model "
            "with a tokenizer that does"
        )
    seen = encoding.ids[encoding.erasable]
    unknown = model.tokenizer.unk_token_id
    if len(seen) and not (unknown is not None and (seen == unknown).all()):
        return
    seen_as = "no token" if not len(seen) else "only unknown characters"
    raise FaithbenchError(
        f"example {encoding.example.id!r}: model {model.name!r} finds {seen_as} in "
        f"{encoding.example.text[:40]!r}; give a text in the model's language"
    )


def collate(
    model: Model,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    seeds: Sequence[int],
    seed: int = 0,
) -> Batch:
    """Pad encodings on the right into one batch on the model's device.

    A classifier's target is a class; a question answerer's is its start and end position. Of a
    joint encoding, the row of the choice that is the target goes into the batch.
    """
    encodings = [
        row_of_choice(encoding, int(target)) if encoding.joint else encoding  # type: ignore[arg-type]  # a choice is a number
        for encoding, target in zip(encodings, targets, strict=True)
    ]
    ids, types, attention = pad_rows(
        [(e.ids, e.types) for e in encodings], int(model.network.config.pad_token_id)
    )
    erasable = np.zeros_like(ids)
    for row, encoding in enumerate(encodings):
        erasable[row, : len(encoding.ids)] = encoding.erasable
    arrays = (ids, types, attention, erasable, np.array(targets, dtype=np.int64))
    sent = send(arrays, model.device)
    return Batch(
        encodings=tuple(encodings),
        ids=sent[0],
        types=sent[1],
        attention=sent[2],
        erasable=sent[3].bool(),
        targets=sent[4],
        seeds=tuple(seeds),
        seed=seed,
    )


def pad_rows(
    rows: Sequence[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]], pad_id: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Stack rows of ids and types to the longest one; the third array marks real tokens.

    A row without tokens is padding alone, at least one token wide: networks need a column.
    """
    longest = max(1, *(len(ids) for ids, _ in rows))
    ids = np.full((len(rows), longest), pad_id, dtype=np.int64)
    types = np.zeros((len(rows), longest), dtype=np.int64)
    attention = np.zeros((len(rows), longest), dtype=np.int64)
    for i, (row_ids, row_types) in enumerate(rows):
        ids[i, : len(row_ids)] = row_ids
        types[i, : len(row_ids)] = row_types
        attention[i, : len(row_ids)] = 1
    return ids, types, attention


def inputs_of(
    network: PreTrainedModel, ids: torch.Tensor, types: torch.Tensor, attention: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Name the tensors as the network's forward does; segments only if it has them.

    A multiple-choice network takes [examples, choices, tokens]: every row is then an example of
    one choice, and its output is the choice's own logit.
    """
    inputs = {"input_ids": ids, "attention_mask": attention}
    if reads_segments(network):
        inputs["token_type_ids"] = types
    if type(network).__name__.endswith("MultipleChoice"):
        return {name: tensor[:, None] for name, tensor in inputs.items()}
    return inputs


def shortened(model: Model, most: int | None) -> Model:
    """Return the model with texts cut at `most` tokens; None leaves it as it is."""
    if most is None:
        return model
    if most > model.max_tokens:
        raise FaithbenchError(
            f"asked for --max-tokens {most}, but the model reads {model.max_tokens}; give fewer"
        )
    return model.with_max_tokens(most)
