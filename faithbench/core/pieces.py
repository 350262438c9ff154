"""Word pieces of a tokenizer joined to the words that a reader knows."""

from __future__ import annotations

from collections.abc import Sequence

_CONTINUES = "##"
_BEGINS = ("\u0120", "\u2581")  # byte-level BPE, and SentencePiece
# The byte-level alphabet writes a line break as this letter.
_BREAKS = "\u010a"


def join_pieces(pieces: Sequence[str], scores: Sequence[float]) -> list[tuple[str, float]]:
    """Return words with the sums of their pieces' scores.

    Tokenizers mark either the pieces that continue a word or those that begin one; without any
    mark, each piece is a word.
    """
    marks_begin = any(piece.startswith(_BEGINS) for piece in pieces)
    words: list[tuple[str, float]] = []
    for piece, score in zip(pieces, scores, strict=True):
        begins = piece.startswith(_BEGINS) if marks_begin else not piece.startswith(_CONTINUES)
        text = piece[1:] if piece.startswith(_BEGINS) else piece.removeprefix(_CONTINUES)
        text = text.replace(_BREAKS, " ")
        if begins or not words:
            words.append((text, float(score)))
        else:
            word, sum_so_far = words[-1]
            words[-1] = (word + text, sum_so_far + float(score))
    return words
