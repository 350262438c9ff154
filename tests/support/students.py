"""Students of tiny models: a folder with random networks, and explanations to learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from faithbench.core.files import file_sha256
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.explainers.students.card import (
    LABELS,
    Initialisation,
    LessonFacts,
    StudentCard,
    TeacherFacts,
)
from faithbench.explainers.students.network import Student, StudentShape
from faithbench.models.model import Model
from tests.support.builders import make_task, put

DIGEST = "5" * 64


def known(model: Model, digest: str = DIGEST) -> Model:
    """Return a model whose weights have a digest, as those of a folder do."""
    return replace(model, sha256=digest, weights_sha256=digest, _twins={})


def put_student(
    folder: Path, model: Model, *, form: str = "labelling", seeds: int = 2, **changes: Any
) -> StudentCard:
    """Write a student with random networks for a model, and return its card."""
    folder.mkdir(parents=True, exist_ok=True)
    table: Any = model.network.get_input_embeddings()
    outputs = 5 if form == "labelling" else 1
    shape = StudentShape(
        width=8, feedforward=12, blocks=2, heads=2, vocabulary=len(table.weight),
        vector_width=table.weight.shape[1], classes=len(model.labels), outputs=outputs,
    )  # fmt: skip
    networks = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        path = folder / f"student-{seed}.safetensors"
        save_file({k: v.half() for k, v in Student(shape).state_dict().items()}, path)
        networks.append(
            Initialisation(
                seed=seed,
                file=path.name,
                sha256=file_sha256(path),
                train_losses=(1.0,),
                dev_losses=(2.0, 1.0),
                epoch=1,
                correlation=0.5,
            )
        )
    facts = TeacherFacts(
        name="occlusion", package="faithbench", version="1", settings={}, assets={},
        rows_sha256="0" * 64,
    )  # fmt: skip
    card = StudentCard(
        task="toy", task_version=1, teacher="occlusion", teachers=(facts,),
        form=form, target="signed", released=False,
        labels=LABELS if form == "labelling" else None,
        model=model.name, weights_sha256=model.weights_sha256, classes=model.labels,
        lessons=LessonFacts(source="folder", split="train", n=90, held_out=10, sha256="0" * 64),
        shape=shape, recipe={}, initialisations=tuple(networks),
    ).model_copy(update=changes)  # fmt: skip
    (folder / "card.json").write_text(card.model_dump_json())
    return card


def put_texts(folder: Path, count: int) -> Dataset:
    """Write short texts that differ as the training split of a task, and read it."""
    words = ("good", "dull", "film", "plot", "very", "great", "not", "and")
    rows = [
        {
            "id": f"t{n}",
            "text": " ".join(words[(n * k + k) % 8] for k in range(1, 4 + n % 5)) + f" w{n % 60}",
            "label": n % 2,
        }
        for n in range(count)
    ]
    put(folder, rows, stem="learn")
    return load_dataset(make_task(), split="train", folder=folder)
