"""The network that training starts from: a base with a fresh head, and perhaps an adapter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.data.kinds import KINDS, Kind
from faithbench.data.tasks import Task
from faithbench.models.devices import choose_device
from faithbench.models.encoding import shortened
from faithbench.models.files.loading import unloadable
from faithbench.models.files.weights import BASE_NAME, base_folder, remember_base
from faithbench.models.model import Model, build_model, quieten
from faithbench.training.from_scratch import (
    check_arch,
    settle_scratch,
    start_network,
    vectors_origin,
)
from faithbench.training.recipe import Recipe, Splits

# Where an adapter goes: the names of all linear maps inside a block, by `model_type` of the
# configuration. peft takes each as the end of a module's path, so `dense` names the output of
# attention, both maps of the feed-forward part, and BERT's pooler after the last block. BERT,
# RoBERTa and ELECTRA share the default's names; an architecture with others needs a line here.
_TARGETS = {
    "distilbert": ("q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"),
    "gpt2": ("c_attn", "c_proj", "c_fc"),  # c_attn is query, key and value in one
}
_BERT_TARGETS = ("query", "key", "value", "dense")

# The names that architectures give to the dropout rates of their encoder.
_DROPOUTS = {
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embd_pdrop",
    "attn_pdrop",
    "resid_pdrop",
}


@dataclass(frozen=True)
class Base:
    """The encoder to fine-tune: its public name, its folder, and the digest of its weights."""

    name: str
    folder: Path
    sha256: str


def find_base(name: str | None, recipe: Recipe | None = None) -> Base:
    """Find what to start from: the bundled encoder, a folder, a name on the hub, or word vectors.

    Only a recipe with an architecture of its own starts from word vectors.
    """
    if recipe is not None and recipe.arch:
        if name is not None:
            raise FaithbenchError(
                f"a {recipe.arch} is trained from scratch and has no base; leave out --base"
            )
        return Base(*vectors_origin(recipe))
    folder, sha256 = base_folder(name or BASE_NAME, "--base")
    # Cards and adapters tell the name: where a folder lies on this machine is nobody's business.
    if name and Path(name).is_dir():
        remember_base(folder, sha256)
    public = Path(name).resolve().name if name and Path(name).is_dir() else name
    return Base(public or BASE_NAME, folder, sha256)


def settle(recipe: Recipe, base: Base) -> Recipe:
    """Fill in what depends on the architecture: modules that get an adapter, or the width."""
    check_arch(recipe)
    if recipe.arch:
        return settle_scratch(recipe)
    if recipe.method == "full" or recipe.targets:
        return recipe
    from transformers import AutoConfig

    with unloadable(base.name, "--base"):
        architecture = AutoConfig.from_pretrained(base.folder, trust_remote_code=False).model_type
    return replace(recipe, targets=_TARGETS.get(architecture, _BERT_TARGETS))


def start_model(
    task: Task, recipe: Recipe, base: Base, device: str = "auto", splits: Splits | None = None
) -> Model:
    """Put a fresh head on the base, and an adapter unless all weights are trained; seeded.

    A network that is trained from scratch takes its vocabulary from `splits`.
    """
    quieten()
    torch.manual_seed(recipe.seed)
    network: Any
    if recipe.arch:
        assert splits is not None
        network, tokenizer = start_network(task, recipe, splits)
    else:
        with unloadable(base.name, "--base"):
            network, tokenizer = _on_base(task, recipe, base)
    trainable = {name for name, p in network.named_parameters() if p.requires_grad}
    model = build_model(
        f"training:{task.name}", network.to(choose_device(device)), tokenizer, labels=task.labels
    )
    # `build_model` freezes all weights, as explaining wants them.
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name in trainable)
    return model if recipe.arch else shortened(model, recipe.max_tokens)


def _on_base(task: Task, recipe: Recipe, base: Base) -> tuple[Any, Any]:
    """Return the base with a fresh head, and perhaps an adapter, and its tokenizer."""
    import transformers

    kind = KINDS[task.kind]
    if kind.has_choices:
        raise FaithbenchError(
            f"task {task.name} is of kind {task.kind}, which train does not fit; train "
            f"AutoModelFor{kind.network} with transformers and give its folder to --model"
        )
    config = transformers.AutoConfig.from_pretrained(base.folder, trust_remote_code=False)
    for name in _DROPOUTS & set(config.to_dict()):
        setattr(config, name, recipe.encoder_dropout)
    if not kind.per_position:
        config.id2label = dict(enumerate(task.labels))
        config.label2id = {label: i for i, label in enumerate(task.labels)}
    auto: Any = getattr(transformers, f"AutoModelFor{kind.network}")
    network: Any = auto.from_pretrained(
        base.folder,
        config=config,
        dtype=torch.float32,
        trust_remote_code=False,
        ignore_mismatched_sizes=True,  # a head of other classes gives way to a fresh one
    )
    network.name_or_path = base.name  # the adapter names its base, not this machine's folder
    if recipe.method == "lora":
        network = _with_adapter(network, recipe, kind)
    return network, transformers.AutoTokenizer.from_pretrained(base.folder, trust_remote_code=False)


def _with_adapter(network: Any, recipe: Recipe, kind: Kind) -> Any:
    """Freeze the encoder, add a LoRA adapter to it, and train the head as a whole."""
    from peft import LoraConfig, TaskType, get_peft_model

    prefix = network.base_model_prefix
    config = LoraConfig(
        task_type=TaskType[kind.adapter_task],
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.targets),
        fan_in_fan_out=network.config.model_type == "gpt2",  # its weights lie transposed
        # All outside the encoder is the head, whatever its name; dropout has nothing to save.
        modules_to_save=[
            name
            for name, module in network.named_children()
            if name != prefix and any(True for _ in module.parameters())
        ],
    )
    return get_peft_model(network, config)
