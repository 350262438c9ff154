"""Scores of pieces of text, as other tools cut it, brought to the tokens that a model reads."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import TYPE_CHECKING

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.core.types import Encoding, Floats, Target
from faithbench.data.words import word_spans

if TYPE_CHECKING:
    from faithbench.models.model import Model

_SPECIAL = {"[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>", "<bos>", "<eos>", "<|endoftext|>"}
"""Special tokens of common models; those of the model itself are added to them."""
_CONTINUES, _BEGINS = "##", ("\u0120", "\u2581")  # of WordPiece; byte-level BPE and SentencePiece
_ENDS = ("</w>", "@@")  # BPE of older models
_MISSING = -1
"""The piece of a letter after the last piece."""


@dataclass(frozen=True, eq=False)
class ScoredPieces:
    """One text as another tool cut it: its pieces, in reading order, and their scores.

    `scores` has one number per piece, or a row per piece with a number for each class; of the
    latter, those of the predicted class are taken. Special tokens may be among the pieces.
    """

    pieces: tuple[str, ...]
    scores: Floats

    def __post_init__(self) -> None:
        if self.scores.ndim not in (1, 2) or len(self.scores) != len(self.pieces):
            raise FaithbenchError(
                f"scores of shape {self.scores.shape} for {len(self.pieces)} pieces of text "
                f"({readable(' '.join(self.pieces[:4]), 40)!r}, ...); give one per piece, or a "
                "row per piece with one per class"
            )
        if not np.isfinite(self.scores).all():
            raise FaithbenchError(
                f"a score of {readable(' '.join(self.pieces[:4]), 40)!r}, ... is not finite; "
                "scores must be numbers"
            )


def align_pieces(
    given: Mapping[str, ScoredPieces],
    model: Model,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
) -> dict[str, tuple[float, ...]]:
    """Return by example id a score per erasable token.

    Pieces that are the model's own tokens keep their scores. Of others, each is shared equally
    among the tokens that it overlaps, so that its sum stays; what stands around the text (a
    prompt, special tokens) is left out. Letters are compared without case and accents.
    """
    special = _SPECIAL | set(model.tokenizer.all_special_tokens)
    aligned = {}
    for encoding, target in zip(encodings, targets, strict=True):
        name = encoding.example.id
        pieces, scores = given[name].pieces, _of_class(given[name], model, target, name)
        tokens = model.tokenizer.convert_ids_to_tokens(encoding.ids.tolist())
        own = [tokens[index] for index in np.flatnonzero(encoding.erasable)]
        length = len(pieces)
        while length and pieces[length - 1] == model.tokenizer.pad_token:
            length -= 1
        if list(pieces[:length]) == tokens:
            scores = scores[:length][encoding.erasable]
        elif list(pieces) != own:
            scores = _shared(_Pieces.of(pieces, special), scores, encoding, own)
        aligned[name] = tuple(scores.tolist())
    return aligned


def _of_class(given: ScoredPieces, model: Model, target: Target, name: str) -> Floats:
    if given.scores.ndim == 1:
        return given.scores
    if given.scores.shape[1] == 1:
        return given.scores[:, 0]
    if isinstance(target, tuple) or given.scores.shape[1] != len(model.labels):
        raise FaithbenchError(
            f"example {readable(name, 60)!r} has scores of {given.scores.shape[1]} classes, and "
            f"model {model.name!r} has {len(model.labels)}; give those of its prediction alone"
        )
    return given.scores[:, target]


@dataclass(frozen=True)
class _Pieces:
    """The letters of all pieces, without what marks them, and the piece that each comes from."""

    pieces: tuple[str, ...]
    letters: str
    owners: tuple[int, ...]

    @classmethod
    def of(cls, pieces: Sequence[str], special: set[str]) -> _Pieces:
        letters, owners = [], list[int]()
        for index, piece in enumerate(pieces):
            if piece.strip() in special:
                continue
            text = piece
            if len(piece) > len(_CONTINUES):
                text = text.removeprefix(_CONTINUES)
            text = text[1:] if text.startswith(_BEGINS) else text
            for mark in _ENDS:
                text = text.removesuffix(mark)
            plain = "".join(map(_letters, text))
            letters.append(plain)
            owners += [index] * len(plain)
        return cls(tuple(pieces), "".join(letters), tuple(owners))


def _letters(character: str) -> str:
    """Return a character without case and accents; nothing for white space."""
    parts = unicodedata.normalize("NFKD", character.casefold())
    return "".join(c for c in parts if not c.isspace() and not unicodedata.combining(c))


def _shared(pieces: _Pieces, scores: Floats, encoding: Encoding, tokens: Sequence[str]) -> Floats:
    """Share each piece's score among the tokens whose letters it has."""
    name, sides = encoding.example.id, _sides(encoding)
    owners = _owners(pieces, encoding, list(dict.fromkeys(sides)))
    spans = [encoding.spans[index] for index in np.flatnonzero(encoding.erasable)]
    overlaps: list[list[int]] = []
    for token, (start, end), side in zip(tokens, spans, sides, strict=True):
        letters = set(chain.from_iterable(owners[side][start:end]))
        if _MISSING in letters:
            raise FaithbenchError(
                f"example {readable(name, 60)!r}: the pieces end before the token {token!r} at "
                f"character {start}; give pieces of all that the model reads"
            )
        overlaps.append(sorted(letters))
    shares = np.bincount(list(chain.from_iterable(overlaps)), minlength=len(scores))
    each = scores / np.maximum(shares, 1)
    return np.array([each[overlap].sum() for overlap in overlaps])


def _sides(encoding: Encoding) -> list[int]:
    """Return for each token that may be erased 0 if it is of text, and 1 if it is of text_b."""
    words = encoding.words[encoding.erasable]
    known = (words[words >= 0] >= len(word_spans(encoding.example.text))).astype(int).tolist()
    sides, side = [], known[0] if known else 0
    following = iter(known)
    for word in words:
        # A token in no word is of the text of the token before it.
        side = next(following) if word >= 0 else side
        sides.append(side)
    return sides


def _owners(
    pieces: _Pieces, encoding: Encoding, order: Sequence[int]
) -> dict[int, list[list[int]]]:
    """Return the pieces of each character's letters, for the texts in the order they are read."""
    texts = (encoding.example.text, encoding.example.text_b or "")
    owners: dict[int, list[list[int]]] = {}
    place = 0
    for side in order:
        letters = list(map(_letters, texts[side]))
        place = _place(pieces, "".join(letters), encoding.example.id, place, len(order) == 1)
        owners[side] = []
        for character in letters:
            ends = place + len(character)
            known = list(pieces.owners[place:ends])
            owners[side].append(known + [_MISSING] * (len(character) - len(known)))
            place = ends
    return owners


def _place(pieces: _Pieces, letters: str, name: str, after: int, once: bool) -> int:
    """Return where the letters of a text begin among those of the pieces, from `after` on.

    If it is the only text, it must be there `once`.
    """
    place = pieces.letters.find(letters, after)
    if place >= 0:
        if once and pieces.letters.find(letters, place + 1) >= 0:
            raise FaithbenchError(
                f"example {readable(name, 60)!r}: its text is among the pieces more than once; "
                "give the pieces of the text alone"
            )
        return place
    there = pieces.letters[after:]
    if there and letters.startswith(there):  # cut short
        return after
    pairs = zip(there, letters, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    at = pieces.owners[after + same] if same < len(there) else len(pieces.pieces) - 1
    piece = pieces.pieces[at] if pieces.pieces else ""
    raise FaithbenchError(
        f"example {readable(name, 60)!r}: piece {at + 1}, {readable(piece, 30)!r}, is not what "
        f"comes next in its text, {readable(letters[same : same + 20], 30)!r}; give the pieces of "
        "this text, in the order of the data"
    )
