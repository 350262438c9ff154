"""Write the attributions of submissions/example-captum-ig with captum alone.

faithbench gives the sentences and the network; the scores are captum's. Run it from the
repository's root: `python benchmarks/captum_submission.py`, half a minute of one core.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from captum.attr import LayerIntegratedGradients

from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.models.encoding import encode
from faithbench.models.model import load_model

FILE = Path("submissions/example-captum-ig/scores/sst2.jsonl")
COUNT = 60  # sentences, as the other explainers of the board's bundled table have
STEPS = 16


def main() -> None:
    """Explain the predicted class of each sentence, one line of JSON for each."""
    task = load_task("sst2")
    model = load_model("bundled:sst2", labels=task.labels, kind=task.kind, device="cpu")
    network, tokenizer = model.network, model.tokenizer
    method = LayerIntegratedGradients(
        lambda ids: network(input_ids=ids).logits, network.get_input_embeddings()
    )
    lines = []
    for example in load_dataset(task, source="bundled", limit=COUNT).examples:
        encoding = encode(model, example, task.evidence)
        ids, erasable = torch.tensor(encoding.ids)[None], torch.tensor(encoding.erasable)
        start = torch.where(erasable, tokenizer.pad_token_id, ids)
        with torch.no_grad():
            target = int(network(input_ids=ids).logits.argmax())
        found = method.attribute(ids, baselines=start, target=target, n_steps=STEPS)
        scores = [float(f"{score:.6g}") for score in found[0].sum(-1)[erasable].tolist()]
        lines.append(json.dumps({"id": example.id, "scores": scores}) + "\n")
    FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
