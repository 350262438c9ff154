"""Peers of the erasure metrics, each in its own interpreter, on the same merged weights."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from faithbench.core.types import Attribution
from faithbench.models.model import Model

# One thread, one call outside the clock; the scores are given, so that only the metric is timed.
FERRET = """
import json, sys, time, torch
import numpy as np
from ferret.evaluators.faithfulness_measures import (
    AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation, TauLOO_Evaluation)
from ferret.explainers.explanation import Explanation
from transformers import AutoModelForSequenceClassification, AutoTokenizer
torch.set_num_threads(1)
folder, texts = json.load(sys.stdin)
network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
metrics = [m(network, tokenizer) for m in (
    AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation, TauLOO_Evaluation)]
removal = {"remove_tokens": False, "based_on": "perc", "thresholds": [.01, .05, .1, .2, .5]}
def run(text, tokens, scores, target):
    # Positive scores: ferret leaves out the others, or stops on arrays of today's numpy.
    said = Explanation(text, tokens, np.abs(scores) + 1e-9, "given", target)
    for metric in metrics:
        metric.compute_evaluation(said, target, removal_args=removal)
run(*texts[0])
start = time.process_time()
for text in texts:
    run(*text)
print(json.dumps(time.process_time() - start))
"""

INTERPRETO = """
import json, sys, time, torch

from interpreto import Granularity, Saliency
from interpreto.attributions.metrics import Deletion
from transformers import AutoModelForSequenceClassification, AutoTokenizer
torch.set_num_threads(1)
folder, texts = json.load(sys.stdin)
network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
method = Saliency(network, tokenizer, granularity=Granularity.TOKEN)
said = [method([text])[0] for text, *_ in texts]
def seconds(size, said):
    metric = Deletion(network, tokenizer, batch_size=size, n_perturbations=9)
    metric.evaluate(said[:1])
    start = time.process_time()
    metric.evaluate(said)
    return time.process_time() - start
size = min((4, 9, 16, 32), key=lambda s: seconds(s, said[:8]))
print(json.dumps([size, seconds(size, said)]))
"""


def ferret_seconds(python: str, model: Model, attributions: Sequence[Attribution]) -> float:
    """Return ferret's seconds for comprehensiveness, sufficiency and tau on our grid."""
    return float(_run(python, FERRET, model, attributions))


def interpreto_seconds(
    python: str, model: Model, attributions: Sequence[Attribution]
) -> tuple[int, float]:
    """Return interpreto's best batch size and its seconds for deletion in nine steps."""
    size, seconds = _run(python, INTERPRETO, model, attributions)
    return int(size), float(seconds)


def _run(python: str, script: str, model: Model, attributions: Sequence[Attribution]) -> Any:
    texts = []
    for attribution in attributions:
        encoding = attribution.encoding
        # Both read the same tokens: what the model truncated is cut from the text.
        text = encoding.example.text[: max(end for _, end in encoding.spans)]
        tokens = model.tokenizer.convert_ids_to_tokens(encoding.ids.tolist())
        texts.append([text, tokens, attribution.every_score.tolist(), attribution.target])
    with tempfile.TemporaryDirectory() as folder:
        model.network.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        done = subprocess.run(
            [python, "-c", script],
            input=json.dumps([folder, texts]),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])
