"""Any attribution class of captum, by name: `captum:<Class>`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch

from faithbench.core.errors import CannotServeError, unknown
from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import embedding_leaf
from faithbench.explainers.passes.gradient_paths import baseline_embeddings, embed
from faithbench.models.encoding import inputs_of
from faithbench.models.session import Session

# The classes of captum that draw at random.
_DRAWS = {"GradientShap", "KernelShap", "Lime", "LimeBase", "ShapleyValueSampling"}


@dataclass(frozen=True)
class CaptumAdapter:
    """Run an attribution class of captum on the word embeddings.

    One text at a time, as captum's samplers need it, with the global generator seeded per
    example: slower than our own methods, and meant to bring along what we do not have.
    `samples` and `steps` reach the classes that take n_samples and n_steps; perturbation
    classes see one feature per token. Scores are summed over the embedding's width.
    """

    stochastic: ClassVar[bool] = False

    method: str = "InputXGradient"
    baseline: str = "pad"
    samples: int = 32
    steps: int = 50

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the summed attributions."""
        rows = [self._explain(session, batch, row) for row in range(len(batch.ids))]
        return torch.stack(rows)

    def _explain(self, session: Session, batch: Batch, row: int) -> torch.Tensor:
        length = int(batch.attention[row].sum())
        here = (slice(row, row + 1), slice(0, length))
        ids, types, attention = (t[here] for t in (batch.ids, batch.types, batch.attention))
        network = _EmbeddingNetwork(session, batch.output)
        inputs = embed(session.model, ids).requires_grad_()
        start = baseline_embeddings(session.model, batch, self.baseline)[here]
        method = captum_class(self.method)(network)
        options = self._options(method, inputs, start)
        with torch.random.fork_rng(), torch.enable_grad():
            torch.manual_seed(batch.seeds[row])
            try:
                attributions = method.attribute(
                    inputs,
                    target=int(batch.targets[row]),
                    additional_forward_args=(ids, types, attention),
                    **options,
                )
            except torch.OutOfMemoryError:
                raise  # a smaller batch may do
            except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError) as error:
                reason = " ".join(str(error).split())[:200]
                raise CannotServeError(
                    f"captum's {self.method} cannot explain model {session.model.name!r}: "
                    f"{type(error).__name__}: {reason}; "
                    "choose another explainer"
                ) from error
        scores = torch.zeros(batch.ids.shape[1], dtype=inputs.dtype, device=inputs.device)
        # Perturbation classes repeat a feature's score over its width; gradients add up over it.
        total = attributions.detach()[0]
        scores[:length] = total[:, 0] if "feature_mask" in options else total.sum(dim=-1)
        return scores

    def _options(self, method: Any, inputs: torch.Tensor, start: torch.Tensor) -> dict[str, Any]:
        """Give the class what its `attribute` takes of the things we know."""
        _, length, width = inputs.shape
        tokens = (
            torch.arange(length, device=inputs.device)[None, :, None].expand_as(inputs).contiguous()
        )
        known = {
            "baselines": start,
            "n_samples": self.samples,
            "n_steps": self.steps,
            "feature_mask": tokens,
            "sliding_window_shapes": (1, width),
        }
        taken = inspect.signature(method.attribute).parameters
        return {name: value for name, value in known.items() if name in taken}


class _EmbeddingNetwork(torch.nn.Module):
    """The network as a function of word embeddings; ids travel as further arguments."""

    def __init__(self, session: Session, output: str) -> None:
        super().__init__()
        self.network, self.output, self.meter = session.model.network, output, session.meter

    def forward(
        self,
        embeddings: torch.Tensor,
        ids: torch.Tensor,
        types: torch.Tensor,
        attention: torch.Tensor,
    ) -> torch.Tensor:
        """Return the logits."""
        network, rows = self.network, len(embeddings)
        ids, types, attention = (t.expand(rows, -1) for t in (ids, types, attention))
        with _placed(network, embeddings):
            logits: torch.Tensor = network(**inputs_of(network, ids, types, attention))[self.output]
        self.meter.charge(forwards=rows, backwards=rows if embeddings.requires_grad else 0)
        return logits


def _placed(network: Any, embeddings: torch.Tensor) -> Any:
    """Put embeddings in place without cutting them off from captum's graph."""
    return embedding_leaf(network, embeddings, cut=False)


@cache
def adapt(name: str) -> type[CaptumAdapter]:
    """Return the adapter of one captum class, checked by name."""
    captum_class(name)
    facts = {"__annotations__": {"method": str}, "method": name, "stochastic": name in _DRAWS}
    return dataclass(frozen=True)(type(name, (CaptumAdapter,), facts))


def captum_class(name: str) -> Any:
    """Find an attribution class of captum that explains inputs."""
    import captum.attr

    usable = {
        key: value
        for key, value in vars(captum.attr).items()
        if inspect.isclass(value)
        and hasattr(value, "attribute")
        and not key.startswith(("Layer", "Neuron", "Internal", "LLM", "Remote"))
        and not key.endswith("Attribution")
        and key != "NoiseTunnel"
    }
    if name not in usable:
        raise unknown("captum class", name, usable)
    return usable[name]
