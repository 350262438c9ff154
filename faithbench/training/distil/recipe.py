"""What determines a student, besides its lessons: form, losses, shape and optimizer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.explainers.students.card import Form, Target
from faithbench.explainers.students.network import Embeddings

Optimizer = Literal["adamw", "sgd"]
Reduction = Literal["mean", "sum"]
RECIPES = ("default", "paper")
FEWEST_STEPS = 20
"""Steps of an epoch, at least."""


@dataclass(frozen=True)
class DistilRecipe:
    """Settings of a distillation.

    - `form`: learn a label per token, or to rank the tokens of a text.
    - `target`: rank by the teacher's weights, or by their magnitude; labels always have signs.
    - `released`: the losses of the code that came with the paper.
    - `width`, `feedforward`, `blocks`, `heads`, `embeddings`: see `StudentShape`.
    - `reduction`: a batch's loss is the mean over labels (over texts of the mean over pairs), or
      the sum over all, as in the paper. Gradients longer than `clip` are shortened; 0 leaves them.
    - `batch_size`: texts per step, or a 20th of all where that is fewer: a student of a few hundred
      texts would otherwise make a handful of steps.
    - `patience`: epochs without a lower loss on held-out texts that end the training.
    """

    form: Form = "labelling"
    target: Target = "signed"
    released: bool = False
    width: int = 96
    feedforward: int = 192
    blocks: int = 4
    heads: int = 4
    embeddings: Embeddings = "frozen"
    optimizer: Optimizer = "adamw"
    reduction: Reduction = "mean"
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    warmup: float = 0.06
    decay: bool = True
    clip: float = 1.0
    dropout: float = 0.1
    batch_size: int = 64
    epochs: int = 5
    patience: int = 3

    def __post_init__(self) -> None:
        """Refuse what is no form, target or optimizer, and signs that labels cannot lose."""
        for noun, value, known in (
            ("form of a student", self.form, get_args(Form)),
            ("target of a student", self.target, get_args(Target)),
            ("kind of embeddings", self.embeddings, get_args(Embeddings)),
            ("optimizer of students", self.optimizer, get_args(Optimizer)),
            ("reduction of the loss", self.reduction, get_args(Reduction)),
        ):
            if value not in known:
                raise unknown(noun, value, known)
        if self.width % self.heads or self.width % 2:
            raise FaithbenchError(
                f"a width of {self.width} cannot be split between {self.heads} heads; choose an "
                "even multiple of them"
            )
        if self.form == "labelling" and self.target == "absolute":
            raise FaithbenchError(
                "labels say which tokens speak against a prediction, so that --target absolute "
                "leaves nothing of them; use it with --form ranking"
            )
        if self.released and self.form == "ranking" and self.target != "absolute":
            raise FaithbenchError(
                "the released code ranks by magnitude; give --target absolute with --released"
            )

    def texts_per_step(self, texts: int) -> int:
        """Return how many of so many texts a step takes."""
        return min(self.batch_size, max(1, texts // FEWEST_STEPS))

    def facts(self) -> dict[str, bool | int | float | str]:
        """Return the settings that the card of a student does not have elsewhere."""
        elsewhere = {"form", "target", "released", "width", "feedforward", "blocks", "heads"}
        return {k: v for k, v in asdict(self).items() if k not in elsewhere | {"embeddings"}}


def with_recipe(base: DistilRecipe, name: str, **settings: Any) -> DistilRecipe:
    """Return the settings of a named recipe, `default` or that of the `paper`, with these changed.

    The paper's is plain gradient descent at a fixed rate of 1e-4 on summed losses, with word
    vectors of the student's own, "until convergence".
    """
    if name not in RECIPES:
        raise unknown("recipe of students", name, RECIPES)
    named: dict[str, Any] = _PAPER if name == "paper" else {}
    return replace(base, **named | settings)


_PAPER: dict[str, Any] = {
    "optimizer": "sgd",
    "reduction": "sum",
    "learning_rate": 1e-4,
    "weight_decay": 0.0,
    "warmup": 0.0,
    "decay": False,
    "clip": 0.0,
    "embeddings": "random",
    "epochs": 30,
}
