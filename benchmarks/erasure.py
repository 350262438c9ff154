"""Erasure metrics: share of the machine's GEMM rate, and ratios to plainer ways, in one run.

All times are CPU seconds of one thread; leave the process a core of its own.

Run: python benchmarks/erasure.py --data <data folder> [--ferret <python>] [--interpreto <python>]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from erasure_peers import ferret_seconds, interpreto_seconds
from tables import best_seconds, write_section
from tabulate import tabulate
from transformers import BertConfig, BertForSequenceClassification

from faithbench.core.erasure import erase_tokens
from faithbench.core.types import Attribution, Bools, Encoding, Outputs
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.metrics.kinds import Metric
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode, inputs_of
from faithbench.models.engine import Engine
from faithbench.models.model import Model, build_model, load_model
from faithbench.models.predictions import predictions
from faithbench.run.score import case_of, score

Line = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Texts:
    """Texts of one kind with a ranking each, and ln f of the full inputs."""

    name: str
    attributions: list[Attribution]
    log_probability: list[float]

    def first(self, count: int) -> Texts:
        """Return the first texts alone."""
        return Texts(self.name, self.attributions[:count], self.log_probability[:count])

    @property
    def title(self) -> str:
        """How many, of what, and how long."""
        tokens = np.mean([len(a.encoding.ids) for a in self.attributions])
        return f"{len(self.attributions)} {self.name}, {tokens:.0f} tokens"


def main() -> None:
    """Measure everything and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ferret", help="a Python with ferret-xai and transformers 4")
    parser.add_argument("--interpreto", help="a Python with interpreto")
    parser.add_argument("--short", type=int, default=100)
    parser.add_argument("--long", type=int, default=20)
    parser.add_argument("--loop", type=int, default=4, help="long texts of the slower ways")
    parser.add_argument("--base", type=int, default=10, help="short texts of the large model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    small = load_model("bundled:sst2", labels=("negative", "positive"))
    short = _texts(small, options.data, "sst2", options.short)
    long = _texts(small, options.data, "imdb", options.long, 270, 330)
    few = long.first(options.loop)
    lines = [*_gemm_share("bundled", small, short), *_gemm_share("bundled", small, long)]
    for texts in (short, few):
        lines += _plainer_ways("bundled", small, texts)
        lines += _peers(small, texts, options.ferret, options.interpreto)
        print(*lines, sep="\n", flush=True)
    large = _bert_base(small)
    base = _again(large, short.first(options.base))
    lines += _gemm_share("BERT-base", large, base) + _plainer_ways("BERT-base", large, base)
    body = tabulate(
        lines,
        headers=("what", "texts", "ours, s/text", "theirs, s/text", "ratio"),
        tablefmt="github",
        disable_numparse=True,
    )
    growth = _growth(small, options.data)
    command = (
        f"python benchmarks/erasure.py --data <data folder> --ferret <python> "
        f"--interpreto <python> --short {options.short} --long {options.long} "
        f"--loop {options.loop} --base {options.base}"
    )
    write_section("Erasure", command, f"{body}\n\n{growth}")


def _texts(
    model: Model, folder: Path, task: str, count: int, low: int = 0, high: int = 512
) -> Texts:
    """Take texts of a length in tokens, in the order of their ids' digests, ranked at random."""
    data = load_dataset(load_task(task), source="folder", folder=folder, limit=40 * count)
    encodings: list[Encoding] = []
    for example in data.examples:
        encoding = encode(model, example)
        if low <= len(encoding.ids) <= high and len(encodings) < count:
            encodings.append(encoding)
    encodings.sort(key=lambda e: len(e.ids))
    draw = np.random.default_rng(0)
    said = predictions(Engine(model), encodings)
    found = [
        Attribution(e, p.target, draw.normal(size=len(e.ids)), 0, 0, 0)
        for e, p in zip(encodings, said, strict=True)
    ]
    return Texts({"sst2": "SST", "imdb": "IMDb"}[task], found, [p.log_probability for p in said])


def _again(model: Model, texts: Texts) -> Texts:
    """Return the same texts with another model's predictions; the vocabulary is the same."""
    said = predictions(Engine(model), [a.encoding for a in texts.attributions])
    found = [
        Attribution(a.encoding, p.target, a.every_score, 0, 0, 0)
        for a, p in zip(texts.attributions, said, strict=True)
    ]
    return Texts(texts.name, found, [p.log_probability for p in said])


def _bert_base(small: Model) -> Model:
    torch.manual_seed(0)
    network = BertForSequenceClassification(BertConfig(num_labels=2))
    return build_model("bert-base-sized", network, small.tokenizer, labels=small.labels)


def _ours(model: Model, texts: Texts, metrics: Sequence[Metric], budget: int = 2048) -> Engine:
    """Score all texts as a run does: 16 at a time through one engine."""
    engine = Engine(model, budget)
    for start in range(0, len(texts.log_probability), 16):
        part = slice(start, start + 16)
        score(engine, texts.attributions[part], texts.log_probability[part], metrics, "mask")
        engine.forget()
    return engine


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _gemm_share(name: str, model: Model, texts: Texts) -> list[Line]:
    """Say how much of the GEMM rate is reached, by the FLOPs of real tokens of distinct rows."""
    square = torch.randn(2048, 2048)
    rate = 2 * 2048**3 / best_seconds(lambda: square @ square)
    metrics = find_metrics("faithfulness")
    lengths: list[int] = []
    count = Engine._compute

    def spy(engine: Engine, rows: list[Any]) -> None:
        lengths.extend(len(ids) for _, (ids, _) in rows)
        count(engine, rows)

    _ours(model, texts.first(2), metrics)
    Engine._compute = spy
    try:
        seconds = _timed(lambda: _ours(model, texts, metrics))
    finally:
        Engine._compute = count
    full, done = (sum(_flops(model, n, whole) for n in lengths) for whole in (True, False))
    each = f"{seconds / len(texts.log_probability):.3f}"
    said = f"{full / seconds / rate:.0%} of {rate / 1e9:.0f} GFLOP/s"
    less = f"{done / seconds / rate:.0%}"
    return [
        (f"{name}: share of the GEMM rate, FLOPs of whole rows", texts.title, each, "-", said),
        (f"{name}: the same, only FLOPs really done", texts.title, each, "-", less),
    ]


def _flops(model: Model, tokens: int, whole: bool) -> float:
    """Count multiply-adds of one row, twice; else leave out what the shorter way leaves out.

    That is at least queries, keys and values of the first block, and all of the last block
    but keys and values.
    """
    config = model.network.config
    width, wide = config.hidden_size, config.intermediate_size
    block = 2 * tokens * (4 * width**2 + 2 * width * wide) + 4 * tokens**2 * width
    total = config.num_hidden_layers * block
    if not whole:
        total -= 2 * tokens * 3 * width**2 + block - 2 * tokens * 2 * width**2
    return float(total)


def _plainer_ways(name: str, model: Model, texts: Texts) -> list[Line]:
    """Compare the whole faithfulness table with a loop over rows, and with metric by metric."""
    metrics = find_metrics("faithfulness")
    ours = min(_timed(lambda: _ours(model, texts, metrics)) for _ in range(2))
    loop = _timed(lambda: _plainly(model, texts, metrics, 1))
    batches = _timed(lambda: _plainly(model, texts, metrics, 32))
    return [
        _line(f"{name}: all metrics, one row at a time", texts, ours, loop),
        _line(f"{name}: metric by metric, one text per batch", texts, ours, batches),
    ]


def _line(what: str, texts: Texts, ours: float, theirs: float) -> Line:
    n = len(texts.log_probability)
    return what, texts.title, f"{ours / n:.3f}", f"{theirs / n:.3f}", f"{theirs / ours:.2f}"


def _plainly(model: Model, texts: Texts, metrics: Sequence[Metric], size: int) -> None:
    """Run the network itself on each metric's rows of each text, `size` at a time."""
    token = model.erasure_id("mask")
    for attribution, log_probability in zip(texts.attributions, texts.log_probability, strict=True):
        case = case_of(attribution, log_probability)
        for metric in metrics:
            plan, kept, falls = metric.rows(case), [], []
            for start in range(0, len(plan), size):
                answers = _run(model, attribution, plan[start : start + size], token)
                falls.append(answers.log_probability)
                kept.append(answers.kept)
                if metric.enough and metric.enough(answers):
                    break
            if falls:
                metric.value(case, Outputs(np.concatenate(falls), np.concatenate(kept)))


def _run(model: Model, attribution: Attribution, keeps: Bools, token: int) -> Outputs:
    rows = [erase_tokens(attribution.encoding, keep, "mask", token) for keep in keeps]
    ids, types = (torch.tensor(np.stack(part)) for part in zip(*rows, strict=True))
    with torch.inference_mode():
        inputs = inputs_of(model.network, ids, types, torch.ones_like(ids))
        found = model.network(**inputs).logits.double().log_softmax(-1).numpy()
    target = attribution.target
    return Outputs(found[:, target], found.argmax(1) == target)


def _peers(model: Model, texts: Texts, ferret: str | None, interpreto: str | None) -> list[Line]:
    """Compare with peers on the same tokens, the same scores and as many rows."""
    lines = []
    if ferret:
        metrics = find_metrics("comprehensiveness,sufficiency,tau_loo")
        ours = min(_timed(lambda: _ours(model, texts, metrics)) for _ in range(2))
        theirs = ferret_seconds(ferret, model, texts.attributions)
        lines.append(_line("ferret: compr., suff. and tau of leave-one-out", texts, ours, theirs))
    if interpreto:
        metrics = find_metrics("aopc")
        ours = min(_timed(lambda: _ours(model, texts, metrics)) for _ in range(2))
        size, theirs = interpreto_seconds(interpreto, model, texts.attributions)
        what = f"interpreto: deletion, nine rows ({size} at a time)"
        lines.append(_line(what, texts, ours, theirs))
    return lines


def _growth(model: Model, folder: Path) -> str:
    """Show seconds by the number of texts, and by the number of distinct rows."""
    lines = []
    metrics = find_metrics("faithfulness")
    every = _texts(model, folder, "sst2", 200)
    order = np.random.default_rng(1).permutation(200)
    for count in (25, 50, 100, 200):
        some = sorted(order[:count], key=lambda i: len(every.attributions[i].encoding.ids))
        texts = Texts(
            "SST", [every.attributions[i] for i in some], [every.log_probability[i] for i in some]
        )
        engine = _ours(model, texts, metrics)
        seconds = min(_timed(lambda t=texts: _ours(model, t, metrics)) for _ in range(2))
        per_row = 1000 * seconds / engine.distinct
        lines.append((count, engine.asked, engine.distinct, f"{seconds:.1f}", f"{per_row:.2f}"))
    heads = ("SST texts", "rows asked for", "distinct rows", "seconds", "ms per distinct row")
    return tabulate(lines, headers=heads, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
