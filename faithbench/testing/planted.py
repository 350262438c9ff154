"""Texts in which one word decides, and a tiny model that knows no more than that word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from faithbench.core.files import temporary_folder
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.tasks import Task
from faithbench.testing.tiny import tiny_tokenizer

if TYPE_CHECKING:
    from faithbench.models.model import Model

WORDS = ("bad", "good")
"""The word that decides, by class; both are in the tiny tokenizer, as are the others, w0 to w59."""


def puts_first(tokens: Sequence[str], scores: Sequence[float]) -> bool:
    """Return whether the planted word has the highest score of a text, alone."""
    best = max(scores)
    first = [token for token, score in zip(tokens, scores, strict=True) if score == best]
    return len(first) == 1 and first[0] in WORDS


def chance_of_first(data: Dataset) -> float:
    """Return how often an order at random puts the planted word first."""
    return fmean(1 / len(example.text.split()) for example in data.examples)


def planted_text(random: Random) -> tuple[list[str], int]:
    """Make up a text of 9 to 15 words, one of which decides its class."""
    words = [f"w{random.randrange(60)}" for _ in range(random.randint(9, 15))]
    label = random.randrange(2)
    words[random.randrange(len(words))] = WORDS[label]
    return words, label


def planted_model(seed: int = 0, steps: int = 200) -> Model:
    """Train a tiny BERT to tell the planted words apart, and to be undecided without one.

    Most texts are shown with some of their words masked: what is left after an erasure is then
    nothing new to the model, and no other word can come to matter.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from faithbench.models.model import build_model

    tokenizer, random = tiny_tokenizer(), Random(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = BertForSequenceClassification(
            BertConfig(
                vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2,
                num_attention_heads=4, intermediate_size=48, max_position_embeddings=70,
                pad_token_id=0,
            )
        )  # fmt: skip
        optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
        for _ in range(steps):
            texts, wanted = zip(*(_lesson(random) for _ in range(64)), strict=True)
            encoded = tokenizer(list(texts), padding=True, return_tensors="pt")
            logits = network(encoded["input_ids"], encoded["attention_mask"]).logits
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor(wanted))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return build_model("planted", network, tokenizer, labels=WORDS, weights_sha256=f"{seed}")


def _lesson(random: Random) -> tuple[str, tuple[float, float]]:
    """Make up a text, some words masked, and the probabilities that the model should give it."""
    words, label = planted_text(random)
    if random.random() < 0.75:
        share = random.random()
        words = ["[MASK]" if random.random() < share else word for word in words]
    # Almost sure, not sure: a probability of 1 has no gradient left.
    of_second = (0.02, 0.98)[label] if WORDS[label] in words else 0.5
    return " ".join(words), (1 - of_second, of_second)


def planted_data(texts: int, seed: int = 100) -> Dataset:
    """Make up a data set of texts with a planted word each."""
    random = Random(seed)
    rows = []
    for index in range(texts):
        words, label = planted_text(random)
        rows.append({"id": f"e{index:03}", "text": " ".join(words), "label": label})
    task = Task.model_validate(
        {
            "name": "planted", "version": 1, "title": "Planted word", "kind": "classification",
            "labels": WORDS, "rationale": "none", "licence": "CC0", "citation": "made up",
            "folder": {"name": "planted", "splits": {"test": "test"}}, "models": {},
        }
    )  # fmt: skip
    with temporary_folder() as folder:
        file = folder / "planted" / "test.jsonl"
        file.parent.mkdir()
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return load_dataset(task, source="folder", folder=folder)


def saved_model(folder: Path, seed: int, steps: int = 200) -> Model:
    """Train such a model, write it to a folder, and return it as anyone would load it there."""
    from transformers.utils import logging

    from faithbench.models.model import load_model

    model = planted_model(seed, steps)
    logging.disable_progress_bar()
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return load_model(str(folder), labels=WORDS, kind="classification", device="cpu")
