"""What an explainer is: the one call that all of them have, and their optional members.

An explainer is a frozen dataclass whose fields are its settings, all plain values with defaults.
It never seeds, caches, times, moves devices or prints; the run does. It leaves the model as it
found it, so patches and hooks live in `with`. The optional members below are looked up here and
nowhere else: the rest of the package calls the functions at the end of this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from faithbench.core.types import Batch, Encoding

if TYPE_CHECKING:
    import torch

    from faithbench.data.dataset import Dataset
    from faithbench.models.model import Model
    from faithbench.models.session import Session


class Explainer(Protocol):
    """A frozen dataclass whose fields are its settings; returns one score per token."""

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Explain the batch's targets: scores [examples, tokens], higher for more support.

        Special tokens and padding may get any score: they are never ranked or erased. Passes
        that other explainers may read go through `session.share`, rows of erased inputs
        through `session.engine`, and any other pass is charged to `session.meter`.
        """
        ...


@runtime_checkable
class Stochastic(Protocol):
    """Has `stochastic: ClassVar[bool]`: True if scores depend on `batch.seeds`.

    Such an explainer runs under several seeds, and its values are means over them.
    """

    stochastic: bool


@runtime_checkable
class NeedsRationale(Protocol):
    """Has `needs_rationale: ClassVar[bool]`: True if only annotated examples can be explained."""

    needs_rationale: bool


@runtime_checkable
class ReadsModel(Protocol):
    """Has `reads_model: ClassVar[bool]`: False if scores do not depend on the model.

    Noise on the embeddings cannot move such scores, so their sensitivity says nothing.
    """

    reads_model: bool


@runtime_checkable
class Replayed(Protocol):
    """Has `replayed: ClassVar[bool]`: True if scores are read back instead of computed.

    Their cost cannot be measured here; `seconds` is what the process that made them took.
    """

    replayed: bool
    seconds: float | None


@runtime_checkable
class Revised(Protocol):
    """Has `revision: ClassVar[int]`: 2 or more once its scores or its cost changed under its name.

    Records of another revision are out of date: it is a part of a record's identity.
    """

    revision: int


@runtime_checkable
class ChecksInputs(Protocol):
    """Refuses inputs that it cannot explain, before any work is done."""

    def check(self, model: Model, encodings: Sequence[Encoding]) -> None:
        """Raise CannotServeError if the model, or one of the encodings, cannot be explained."""
        ...


@runtime_checkable
class PromisesSum(Protocol):
    """Promises what its scores add up to (completeness), and can tell how far it missed that."""

    def gaps(self, session: Session, batch: Batch, scores: torch.Tensor) -> torch.Tensor:
        """Return, per example, the sum of its scores minus what it should be."""
        ...


@runtime_checkable
class HasAssets(Protocol):
    """Reads files besides the model's weights, whose digests belong in the record."""

    def assets(self, model: Model) -> Mapping[str, str]:
        """Return the digest of each file, by a short name."""
        ...


@runtime_checkable
class HasFolderSettings(Protocol):
    """Has `folder_settings: ClassVar[tuple[str, ...]]`, the settings that name folders.

    Labels and records show the last part of them alone: where a folder lies on somebody's machine
    is nobody's business, and the assets say what was in it.
    """

    folder_settings: tuple[str, ...]


@runtime_checkable
class LearnsFromTrain(Protocol):
    """Learns something of the task's training split, before it explains anything.

    What it returns as taught no longer `needs_training`, has the same settings, and names the
    training split and its digest among its assets.
    """

    @property
    def needs_training(self) -> bool:
        """Whether it has still to be taught before it can explain."""
        ...

    def with_training(self, train: Dataset, model: Model) -> Explainer:
        """Return this explainer as taught by the training split; model is the one to explain."""
        ...


def is_stochastic(explainer: object) -> bool:
    """Return whether an explainer draws at random."""
    return isinstance(explainer, Stochastic) and explainer.stochastic


def needs_rationale(explainer: object) -> bool:
    """Return whether an explainer can explain only examples with a rationale."""
    return isinstance(explainer, NeedsRationale) and explainer.needs_rationale


def reads_model(explainer: object) -> bool:
    """Return whether an explainer's scores depend on the model; by default they do."""
    return explainer.reads_model if isinstance(explainer, ReadsModel) else True


def revision_of(explainer: object) -> int:
    """Return the revision of an explainer; 1 unless it says otherwise."""
    return explainer.revision if isinstance(explainer, Revised) else 1


def is_replayed(explainer: object) -> bool:
    """Return whether an explainer only reads back scores that were computed elsewhere."""
    return isinstance(explainer, Replayed) and explainer.replayed


def replayed_seconds(explainer: object) -> float | None:
    """Return how long it took to compute replayed scores, where that is known."""
    return explainer.seconds if isinstance(explainer, Replayed) else None


def check_inputs(explainer: object, model: Model, encodings: Sequence[Encoding]) -> None:
    """Let an explainer refuse inputs that it cannot explain."""
    if isinstance(explainer, ChecksInputs):
        explainer.check(model, encodings)


def gaps_of(
    explainer: object, session: Session, batch: Batch, scores: torch.Tensor
) -> list[float | None]:
    """Return how far each example's scores miss their promised sum; None without a promise."""
    # The sum is promised for one output; an answer's scores are those of two, added.
    if not isinstance(explainer, PromisesSum) or len(session.model.outputs) > 1:
        return [None] * len(batch.ids)
    (part,) = session.per_output(batch)
    gaps: Any = explainer.gaps(session, part, scores)
    return [float(gap) for gap in gaps.tolist()]


def assets_of(explainer: object, model: Model) -> dict[str, str]:
    """Return digests of the files that an explainer's scores depend on."""
    return dict(explainer.assets(model)) if isinstance(explainer, HasAssets) else {}


def folder_settings(explainer: object) -> tuple[str, ...]:
    """Return the names of an explainer's settings that are folders."""
    return explainer.folder_settings if isinstance(explainer, HasFolderSettings) else ()


def needs_training(explainer: object) -> bool:
    """Return whether an explainer has to learn from the training split before it can explain."""
    return isinstance(explainer, LearnsFromTrain) and explainer.needs_training


def taught(explainer: Explainer, train: Dataset, model: Model) -> Explainer:
    """Return an explainer as it is after it has learned from the training split."""
    if not isinstance(explainer, LearnsFromTrain):
        return explainer
    return explainer.with_training(train, model)
