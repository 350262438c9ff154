"""Fine-tune the bundled encoder on a task: a LoRA adapter and a head, small enough to ship."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from faithbench.data import Dataset
from faithbench.encoding import encode, inputs_of, pad_rows
from faithbench.errors import FaithbenchError
from faithbench.evaluation import accuracy
from faithbench.models import Model, build_model, load_model, quieten
from faithbench.training.checkpoint import load_checkpoint, save_checkpoint
from faithbench.types import Encoding
from faithbench.weights import BASE_NAME, BASE_SHA256, base_encoder, file_sha256

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the weights, beside the data."""

    seed: int = 0
    epochs: int = 4
    learning_rate: float = 1e-3
    batch_size: int = 32
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.1
    weight_decay: float = 0.01
    warmup: float = 0.06
    targets: tuple[str, ...] = ("query", "key", "value", "dense")


@dataclass(frozen=True)
class Splits:
    """The data a model is trained on, chosen by, and judged on."""

    train: Dataset
    dev: Dataset
    test: Dataset


def fit(splits: Splits, recipe: Recipe, out: Path, progress: Progress) -> dict[str, Any]:
    """Train an adapter into `out` and return its card; continues where a killed run stopped."""
    out.mkdir(parents=True, exist_ok=True)
    _check_same_run(splits, recipe, out)
    model = _start_model(splits.train, recipe)
    train = [encode(model, e, splits.train.task.evidence) for e in splits.train.examples]
    parameters = {n: p for n, p in model.network.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    history = load_checkpoint(out, parameters, optimizer)
    for epoch in range(len(history), recipe.epochs):
        _train_epoch(model, train, optimizer, recipe, epoch, progress)
        history = [*history, round(accuracy(model, splits.dev, progress=progress), 4)]
        if history[-1] == max(history):
            _save_adapter(model, out)
        save_checkpoint(out, parameters, optimizer, history)
    return _write_card(splits, recipe, out, history, progress)


def _start_model(data: Dataset, recipe: Recipe) -> Model:
    """Put a fresh adapter and head on the base encoder; same seed, same start."""
    from peft import LoraConfig, TaskType, get_peft_model
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    base = str(base_encoder())
    quieten()
    torch.manual_seed(recipe.seed)
    labels = data.task.labels
    network = AutoModelForSequenceClassification.from_pretrained(base, num_labels=len(labels))
    network.name_or_path = BASE_NAME  # the adapter names its base, not this machine's folder
    config = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.targets),
        modules_to_save=["classifier"],
    )
    trainable: Any = get_peft_model(network, config)
    wanted = {n for n, p in trainable.named_parameters() if p.requires_grad}
    model = build_model(
        f"training:{data.task.name}",
        trainable,
        AutoTokenizer.from_pretrained(base),
        labels=labels,
    )
    for name, parameter in trainable.named_parameters():
        parameter.requires_grad_(name in wanted)
    return model


def _train_epoch(
    model: Model,
    encodings: Sequence[Encoding],
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    epoch: int,
    progress: Progress,
) -> None:
    # Seeding per epoch makes a continued run equal to an uninterrupted one.
    torch.manual_seed(recipe.seed * 1000 + epoch)
    batches = _batches(encodings, recipe, epoch)
    total = recipe.epochs * len(batches)
    model.network.train()
    for index, batch in enumerate(batches):
        step = epoch * len(batches) + index
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * _schedule(step, total, recipe.warmup)
        arrays = pad_rows([(e.ids, e.types) for e in batch], int(model.tokenizer.pad_token_id))
        ids, types, attention = (torch.tensor(a, device=model.device) for a in arrays)
        logits = model.network(**inputs_of(model.network, ids, types, attention)).logits
        gold = torch.tensor([e.example.label for e in batch], device=logits.device)
        optimizer.zero_grad()
        F.cross_entropy(logits, gold).backward()
        torch.nn.utils.clip_grad_norm_(
            [p for group in optimizer.param_groups for p in group["params"]], 1.0
        )
        optimizer.step()
        progress(f"epoch {epoch + 1}/{recipe.epochs}", index + 1, len(batches))
    model.network.eval()


def _batches(encodings: Sequence[Encoding], recipe: Recipe, epoch: int) -> list[Sequence[Encoding]]:
    """Shuffle, then sort inside pools of 50 batches, so that little is padded."""
    draw = random.Random(f"{recipe.seed}:{epoch}")
    order = draw.sample(list(encodings), len(encodings))
    size = recipe.batch_size
    batches = []
    for start in range(0, len(order), 50 * size):
        pool = sorted(order[start : start + 50 * size], key=lambda e: len(e.ids))
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    draw.shuffle(batches)
    return list(batches)


def _schedule(step: int, total: int, warmup: float) -> float:
    """Rise linearly over the warm-up share of the steps, then fall linearly to 0."""
    rising = max(1, int(warmup * total))
    return (step + 1) / rising if step < rising else (total - step) / max(1, total - rising)


def _save_adapter(model: Model, out: Path) -> None:
    """Write the adapter in half precision."""
    from safetensors.torch import load_file, save_file

    network: Any = model.network
    # Embeddings are never trained; asked to find out, peft would look on the hub and warn.
    network.save_pretrained(str(out), save_embedding_layers=False)
    (out / "README.md").unlink(missing_ok=True)
    weights = out / "adapter_model.safetensors"
    halves = {name: value.half() for name, value in load_file(weights).items()}
    save_file(halves, weights, metadata={"format": "pt"})
    settings = json.loads((out / "adapter_config.json").read_text())
    # peft keeps a set, whose order is another in each process.
    settings["target_modules"] = sorted(settings["target_modules"])
    (out / "adapter_config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def _card_facts(splits: Splits, recipe: Recipe) -> dict[str, Any]:
    return {
        "task": splits.train.task.name,
        "labels": list(splits.train.task.labels),
        "base": BASE_NAME,
        "base_sha256": BASE_SHA256,
        "recipe": json.loads(json.dumps(asdict(recipe))),
        "data": {
            name: {"source": d.source, "split": d.split, "n": len(d.examples), "sha256": d.sha256}
            for name, d in vars(splits).items()
        },
    }


def _check_same_run(splits: Splits, recipe: Recipe, out: Path) -> None:
    """Refuse to continue somebody else's training in the same folder."""
    note = out / "run.json"
    facts = json.dumps(_card_facts(splits, recipe), sort_keys=True)
    # The note goes last: with it, a card is one that a killed run had not measured yet.
    if (out / "card.json").exists() and not note.exists():
        raise FaithbenchError(f"{out} already holds a trained model; choose another --out")
    if note.exists() and note.read_text() != facts:
        raise FaithbenchError(
            f"{out} holds a training with other data or settings; choose another --out"
        )
    note.write_text(facts)


def _write_card(
    splits: Splits, recipe: Recipe, out: Path, history: list[float], progress: Progress
) -> dict[str, Any]:
    """Measure the shipped files, not the weights in memory, and write what they are."""
    card = _card_facts(splits, recipe) | {
        "adapter_sha256": file_sha256(out / "adapter_model.safetensors"),
        "dev_accuracy_by_epoch": history,
    }
    target = out / "card.json"
    target.write_text(json.dumps(card, indent=2, sort_keys=True) + "\n")
    final = load_model(str(out), labels=splits.test.task.labels)
    card["test_accuracy"] = round(accuracy(final, splits.test, progress=progress), 4)
    target.write_text(json.dumps(card, indent=2, sort_keys=True) + "\n")
    (out / "run.json").unlink()
    (out / "checkpoint.safetensors").unlink(missing_ok=True)
    return card
