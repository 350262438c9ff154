"""The network a training starts from: a base with a fresh head, and an adapter or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from faithbench.data.tasks import Task
from faithbench.models.encoding import shortened
from faithbench.models.model import Model, build_model, choose_device, quieten
from faithbench.models.weights import BASE_NAME, base_folder
from faithbench.training.recipe import Recipe

# All linear maps of an encoder's blocks, by architecture.
_TARGETS = {
    "distilbert": ("q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"),
    "gpt2": ("c_attn", "c_proj", "c_fc"),
}
_BERT_TARGETS = ("query", "key", "value", "dense")


@dataclass(frozen=True)
class Base:
    """What is fine-tuned: its public name, its folder, and the digest of its weights."""

    name: str
    folder: Path
    sha256: str


def find_base(name: str | None) -> Base:
    """Find the encoder to start from: the bundled one, a folder, or a name on the hub."""
    return Base(name or BASE_NAME, *base_folder(name or BASE_NAME))


def settle(recipe: Recipe, base: Base) -> Recipe:
    """Fill in what depends on the architecture: where an adapter goes."""
    if recipe.method == "full" or recipe.targets:
        return recipe
    from transformers import AutoConfig

    kind = AutoConfig.from_pretrained(base.folder).model_type
    return replace(recipe, targets=_TARGETS.get(kind, _BERT_TARGETS))


def start_model(task: Task, recipe: Recipe, base: Base, device: str = "auto") -> Model:
    """Put a fresh head, and an adapter unless all weights learn, on the base; seeded."""
    from transformers import (
        AutoConfig,
        AutoModelForQuestionAnswering,
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    quieten()
    torch.manual_seed(recipe.seed)
    asks = task.kind == "qa"
    config = AutoConfig.from_pretrained(base.folder)
    for name in _DROPOUTS & set(config.to_dict()):
        setattr(config, name, recipe.encoder_dropout)
    if not asks:
        config.id2label = dict(enumerate(task.labels))
        config.label2id = {label: i for i, label in enumerate(task.labels)}
    auto: Any = AutoModelForQuestionAnswering if asks else AutoModelForSequenceClassification
    network = auto.from_pretrained(
        base.folder,
        config=config,
        dtype=torch.float32,
        ignore_mismatched_sizes=True,  # a head of other classes gives way to a fresh one
    )
    network.name_or_path = base.name  # the adapter names its base, not this machine's folder
    learner: Any = network if recipe.method == "full" else _with_adapter(network, recipe, asks)
    learning = {name for name, p in learner.named_parameters() if p.requires_grad}
    tokenizer = AutoTokenizer.from_pretrained(base.folder)
    model = build_model(
        f"training:{task.name}", learner.to(choose_device(device)), tokenizer, labels=task.labels
    )
    for name, parameter in learner.named_parameters():
        parameter.requires_grad_(name in learning)
    return shortened(model, recipe.max_tokens)


_DROPOUTS = {
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embd_pdrop",
    "attn_pdrop",
    "resid_pdrop",
}


def _with_adapter(network: Any, recipe: Recipe, asks: bool) -> Any:
    from peft import LoraConfig, TaskType, get_peft_model

    prefix = network.base_model_prefix
    config = LoraConfig(
        task_type=TaskType.QUESTION_ANS if asks else TaskType.SEQ_CLS,
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.targets),
        fan_in_fan_out=network.config.model_type == "gpt2",
        modules_to_save=[
            name
            for name, part in network.named_children()
            if name != prefix and any(True for _ in part.parameters())
        ],
    )
    return get_peft_model(network, config)
