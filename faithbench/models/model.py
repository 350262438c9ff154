"""The one door to transformers: find, load and place a network and its tokenizer."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from faithbench.core.erasure import Operator
from faithbench.core.errors import FaithbenchError
from faithbench.data.hub_faults import telling_faults
from faithbench.data.kinds import KINDS, Kind
from faithbench.data.kinds.classification import CLASSIFICATION
from faithbench.models.architectures import register_architectures
from faithbench.models.devices import choose_device, forbid_tf32, place_for
from faithbench.models.files.adapter import merge_adapter
from faithbench.models.files.digest import sha256_of_model
from faithbench.models.files.loading import unloadable
from faithbench.models.files.weights import Located, locate, read_card, sha256_of_weights
from faithbench.models.magnitudes import Magnitudes

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier ready to run, its tokenizer, and where its weights came from.

    `sha256` is the digest of all that decides its predictions: weights, configuration, tokenizer.
    `network` uses PyTorch's fused attention; `eager()` gives the same weights with
    attention matrices that can be read. Parameters never require gradients. `magnitudes` are kept
    for the relevance pass. The engine's pass is `compiled` by torch on demand, on GPUs alone.
    """

    name: str
    revision: str | None
    sha256: str
    weights_sha256: str
    folder: Path | None
    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    labels: tuple[str, ...]
    kind: Kind = CLASSIFICATION
    compiled: bool = False
    magnitudes: Magnitudes = field(default_factory=Magnitudes)
    _twins: dict[torch.dtype, PreTrainedModel] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.network.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return self.network.dtype

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that are explained: one of a classifier, two of a question answerer."""
        return self.kind.outputs

    @property
    def max_tokens(self) -> int:
        """The longest input, special tokens included."""
        return longest_input(self.network.config, self.tokenizer, usual=512)

    def with_max_tokens(self, most: int) -> Model:
        """Return a model of the same network that reads at most this number of tokens."""
        tokenizer = copy.copy(self.tokenizer)
        tokenizer.model_max_length = most
        return replace(self, tokenizer=tokenizer)

    @property
    def public_name(self) -> str:
        """The name without any folder of this machine."""
        return Path(self.name).name if Path(self.name).is_dir() else self.name

    def is_known_by(self, sha256: str | None, weights_sha256: str) -> bool:
        """Return whether digests are those of this model; older files have its weights' alone."""
        return (self.weights_sha256 if sha256 is None else self.sha256) == (
            sha256 or weights_sha256
        )

    def eager(self, dtype: torch.dtype | None = None) -> PreTrainedModel:
        """Return the network with readable attention, in `dtype`; made once, then kept.

        It is on the model's device, or on the CPU if that device has no numbers of this type.
        """
        dtype = dtype or self.dtype
        if dtype not in self._twins:
            # At the same precision the copy shares every weight with the original.
            shared = dtype == self.dtype
            memo = {id(p): p for p in self.network.parameters()} if shared else {}
            twin = copy.deepcopy(self.network, memo)
            twin.set_attn_implementation("eager")
            if not shared:
                # Moved first: a device cannot convert to a type that it does not have. The
                # method is torch's, since transformers' own `to` is untyped.
                torch.nn.Module.to(twin, place_for(dtype, self.device))
                torch.nn.Module.to(twin, dtype)
            self._twins[dtype] = twin
        return self._twins[dtype]

    def erasure_token(self, operator: Operator) -> tuple[str, int]:
        """Return the token that stands for an erased one: mask, else unk, pad, eos."""
        tok = self.tokenizer
        names = ("pad",) if operator == "pad" else ("mask", "unk", "pad", "eos")
        for name in names:
            token = getattr(tok, f"{name}_token")
            if token is not None:
                return str(token), int(getattr(tok, f"{name}_token_id"))
        raise FaithbenchError(
            f"model {self.name!r} has no token to erase with; use --operator delete"
        )

    def erasure_id(self, operator: Operator) -> int:
        """Return the id of the token that stands for an erased one; for delete there is none."""
        return 0 if operator == "delete" else self.erasure_token(operator)[1]


_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "longformer"}


def longest_input(config: Any, tokenizer: Any, usual: int | None = None) -> int:
    """Return the longest input in tokens, special ones included, that network and tokenizer take.

    `usual` is assumed of a network whose configuration says nothing of positions.
    """
    longest = int(tokenizer.model_max_length)
    positions = getattr(config, "max_position_embeddings", usual)
    if positions is not None and positions < 0:  # XLNet counts distances, and has no longest one
        positions = usual
    if positions is None:
        return longest
    # RoBERTa and its kin count positions from padding_idx + 1, so two of them are never used.
    offset = int(config.pad_token_id or 0) + 1 if config.model_type in _OFFSET_POSITIONS else 0
    return min(longest, int(positions) - offset)


def load_model(
    ref: str,
    *,
    labels: tuple[str, ...],
    kind: str | None = None,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    compiled: bool = False,
) -> Model:
    """Load a classifier or question answerer: `bundled:<task>`, a folder, or a hub name.

    With the `kind` of a task, a model of another kind is refused. The model's labels are the
    task's, and after them those that its training added, such as `neutral`.
    """
    if compiled and choose_device(device).type == "cpu":
        raise FaithbenchError(
            "--compiled is for GPUs: on the CPU it takes minutes and gains nothing; leave it out"
        )
    with unloadable(ref):
        loaded = _load(ref, labels, kind, revision, device, dtype)
    return replace(loaded, compiled=compiled)


def _load(
    ref: str,
    labels: tuple[str, ...],
    kind: str | None,
    revision: str | None,
    device: str,
    dtype: str,
) -> Model:
    if dtype not in DTYPES:
        raise FaithbenchError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    target_device = place_for(DTYPES[dtype], choose_device(device))
    located = locate(ref, revision)
    quieten()
    register_architectures()
    import transformers

    model_kind = _kind_of(located)
    if kind is not None and KINDS[kind].network != model_kind.network:
        raise FaithbenchError(
            f"model {ref!r} is a {model_kind.model_noun}, the task is of "
            f"kind {kind}; choose a model that was trained for this task with --model"
        )
    if model_kind.has_classes:
        labels = (*labels, *_added_labels(located))
        _check_classes(ref, located, len(labels))
    auto: Any = getattr(transformers, f"AutoModelFor{model_kind.network}")
    with _reading(located):
        network, report = auto.from_pretrained(
            located.base,
            revision=located.revision,
            num_labels=len(labels) if model_kind.has_classes else 2,
            dtype=torch.float32,
            trust_remote_code=False,
            output_loading_info=True,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            located.base, revision=located.revision, trust_remote_code=False
        )
    if located.adapter is not None:
        network = merge_adapter(network, located.adapter)
    elif untrained := [
        key for key in report["missing_keys"] if not key.startswith(network.base_model_prefix)
    ]:
        raise FaithbenchError(
            f"model {ref!r} has no trained {model_kind.head_noun} "
            f"(no {', '.join(sorted(untrained))}); "
            "choose a model that was trained for this task with --model"
        )
    return build_model(
        ref,
        network.to(DTYPES[dtype]).to(target_device),
        tokenizer,
        labels=labels,
        revision=located.revision,
        sha256=sha256_of_model(located),
        weights_sha256=sha256_of_weights(located),
        folder=located.adapter or located.folder,
        kind=model_kind if kind is None else KINDS[kind],
    )


def _reading(located: Located) -> AbstractContextManager[None]:
    """Return a block in which a model is read: what goes wrong on the hub becomes one line."""
    if located.folder is not None:
        return nullcontext()
    # Else transformers asks a public service, in a thread, to convert a model that has no
    # safetensors, and to open a pull request for it.
    os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"
    return telling_faults(
        f"model {located.base!r}", located.revision, "choose another with --model"
    )


def _kind_of(located: Located) -> Kind:
    """Return the kind of a model, by its card or by the architecture in its configuration."""
    if located.adapter is not None:
        return KINDS[read_card(located.adapter).get("kind", CLASSIFICATION.name)]
    from transformers import AutoConfig

    with _reading(located):
        config = AutoConfig.from_pretrained(
            located.base, revision=located.revision, trust_remote_code=False
        )
    return _kind_by_architecture(config.architectures or ())


def _kind_by_architecture(names: Iterable[str]) -> Kind:
    """Return the first kind whose network one of the names ends with, else classification."""
    names = tuple(names)
    for kind in KINDS.values():
        if any(name.endswith(kind.network) for name in names):
            return kind
    return CLASSIFICATION


def _added_labels(located: Located) -> tuple[str, ...]:
    """Return the classes that a training added to those of the task, by the model's card."""
    folder = located.adapter or located.folder
    if folder is None or not (folder / "card.json").is_file():
        return ()
    return tuple(read_card(folder).get("added_labels", ()))


def _check_classes(ref: str, located: Located, wanted: int) -> None:
    """Refuse a model of another task, whose head would not fit."""
    from transformers import AutoConfig

    if located.adapter is not None:
        classes = len(read_card(located.adapter)["labels"])
    else:
        with _reading(located):
            config = AutoConfig.from_pretrained(
                located.base, revision=located.revision, trust_remote_code=False
            )
        classes = config.num_labels
    if classes != wanted:
        raise FaithbenchError(
            f"model {ref!r} has {classes} classes, the task has {wanted}; "
            "choose a model that was trained for this task with --model"
        )


def build_model(
    name: str,
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    labels: tuple[str, ...],
    revision: str | None = None,
    sha256: str | None = None,
    weights_sha256: str = "",
    folder: Path | None = None,
    kind: Kind | None = None,
) -> Model:
    """Wrap a network already in memory: evaluation mode, frozen, with a padding token.

    Without a `kind` it is that of the network's class. A network that no files are behind is known
    by the digest of its weights alone.
    """
    forbid_tf32()
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if network.config.pad_token_id is None:
        network.config.pad_token_id = tokenizer.pad_token_id
    network.eval().requires_grad_(False)
    kind = kind or _kind_by_architecture(cls.__name__ for cls in type(network).__mro__)
    return Model(
        name,
        revision,
        weights_sha256 if sha256 is None else sha256,
        weights_sha256,
        folder,
        network,
        tokenizer,
        labels,
        kind,
    )


def quieten() -> None:
    """Keep transformers' load report and progress bars off the terminal.

    The report would warn of a missing head, which an adapter brings along.
    """
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
