"""Explainers against captum and interpreto: ratios of CPU seconds in one run, one thread.

Run: python benchmarks/explainers.py --data <data folder> [--peer <python with interpreto>]

On a machine that others share, one measurement of the same code can be a quarter off the next.
Occlusion, lime and kernel-shap on the short texts are therefore measured several times, ours and
theirs in turns, and the medians are compared; the lowest and highest ratio stand beside them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tables import write_section
from tabulate import tabulate

from faithbench.core.types import Encoding, Example
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate, encode, inputs_of
from faithbench.models.model import Model, load_model
from faithbench.models.session import Session
from faithbench.run.attribute import attribute
from faithbench.run.attribute import explain as run_explainer

BATCHES = (8, 16, 32)
PERTURBATIONS = (1, 8, 16, 32, 64)
SAMPLES = 128
WHITE_BOX = (
    "attention,rollout,attention-x-gradient,gae,grad-cam,cam,attcat,gradient,input-x-gradient,"
    "lrp-rollout"
)


@dataclass(frozen=True)
class Texts:
    """Texts of one kind, encoded, with their predicted classes."""

    name: str
    encodings: list[Encoding]
    targets: list[int]


def main() -> None:
    """Measure every pair and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--peer", help="a Python that has interpreto and torch")
    parser.add_argument("--short", type=int, default=64)
    parser.add_argument("--long", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5, help="on short texts")
    parser.add_argument("--longest", type=int, default=160, help="tokens of a long text, at most")
    parser.add_argument("--sampling", action="store_true", help="lime and kernel-shap alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = load_task("sst2")
    model = load_model("bundled:sst2", labels=task.labels)
    data = load_dataset(task, source="folder", folder=options.data, limit=options.short)
    short = _texts(model, "SST", list(data.examples))
    long = _texts(model, "IMDb", _imdb(model, options.data, options.long, options.longest))
    command = (
        "python benchmarks/explainers.py --data <data folder> "
        f"--short {options.short} --long {options.long}"
    )
    turns = ((short, options.rounds), (long, 1))
    sampling = [line for texts, rounds in turns for line in _sampling(model, texts, rounds)]
    rows = ", ".join(map(str, PERTURBATIONS))
    write_section(
        "Lime and kernel-shap against captum",
        f"{command} --sampling --rounds {options.rounds}",
        f"captum's best is that of {rows} rows at a time on the middle text.\n\n{_table(sampling)}",
    )
    if options.sampling:
        return
    lines = [*_shared(model, short)]
    for texts, rounds in turns:
        lines += _against_captum(model, texts, rounds)
        print(*lines, sep="\n", flush=True)
        lines += _against_interpreto(model, texts, options.peer) if options.peer else []
    lines += _memory(model, long)
    peer = f" --peer <python> --rounds {options.rounds}"
    write_section("Explainers", f"{command}{peer}", _table(lines))


def _table(lines: Sequence[tuple[str, ...]]) -> str:
    headers = ("what", "texts", "ours, s/text", "theirs, s/text", "theirs / ours")
    return str(tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True))


def _texts(model: Model, name: str, examples: list[Example]) -> Texts:
    encodings = sorted((encode(model, e) for e in examples), key=lambda e: len(e.ids))
    session = Session(model)
    answers = session.engine.log_probabilities([(e.ids, e.types) for e in encodings])
    session.clear()
    tokens = sum(len(e.ids) for e in encodings) / len(encodings)
    title = f"{len(encodings)} {name}, {tokens:.0f} tokens"
    return Texts(title, encodings, [int(t) for t in answers.argmax(axis=1)])


def _imdb(model: Model, folder: Path, count: int, longest: int) -> list[Example]:
    """Take the first reviews that are no longer than asked: peers need minutes per long text."""
    import gzip

    found: list[Example] = []
    with gzip.open(folder / "imdb" / "test.jsonl.gz", "rt") as file:
        for line in file:
            row = json.loads(line)
            example = Example(row["id"], row["text"], int(row["label"]))
            if 0.75 * longest <= len(encode(model, example).ids) <= longest:
                found.append(example)
            if len(found) == count:
                break
    return found


def _ours(model: Model, texts: Texts, name: str, batch: int = 16) -> float:
    """Return our seconds per text, in batches as a run makes them, after a warm-up."""
    (chosen,) = find_explainers(name)
    session = Session(model)
    parts = [
        range(i, min(i + batch, len(texts.targets))) for i in range(0, len(texts.targets), batch)
    ]

    def explain(part: range) -> float:
        encodings = [texts.encodings[i] for i in part]
        targets = [texts.targets[i] for i in part]
        batch = collate(model, encodings, targets, [0] * len(part))
        start = time.process_time()
        run_explainer(session, chosen.explainer, batch)
        spent = time.process_time() - start
        session.clear()
        return spent

    explain(range(1))
    return sum(explain(part) for part in parts) / len(texts.targets)


def _theirs(texts: Texts, explain: Callable[[Encoding, int], object]) -> float:
    """Return a peer's seconds per text, one text at a time, after a warm-up."""
    explain(texts.encodings[0], texts.targets[0])
    start = time.process_time()
    for encoding, target in zip(texts.encodings, texts.targets, strict=True):
        explain(encoding, target)
    return (time.process_time() - start) / len(texts.targets)


def _best(
    texts: Texts,
    make: Callable[[int], Callable[[Encoding, int], object]],
    sizes: Sequence[int] = BATCHES,
) -> int:
    """Find a peer's best batch size on its middle text."""
    middle = len(texts.targets) // 2
    probe = Texts("", texts.encodings[middle : middle + 1], texts.targets[middle : middle + 1])
    return min(sizes, key=lambda b: _theirs(probe, make(b)))


def _line(what: str, texts: Texts, ours: float, theirs: float) -> tuple[str, ...]:
    return (what, texts.name, f"{ours:.3f}", f"{theirs:.3f}", f"{theirs / ours:.2f}")


def _median_line(
    what: str, texts: Texts, ours: list[float], theirs: list[float]
) -> tuple[str, ...]:
    """Compare the medians of several rounds."""
    middle = _line(what, texts, statistics.median(ours), statistics.median(theirs))
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    if len(ratios) == 1:
        return middle
    return (*middle[:-1], f"{middle[-1]} ({min(ratios):.2f} to {max(ratios):.2f})")


def _in_turns(
    model: Model,
    texts: Texts,
    name: str,
    peers: Mapping[str, Callable[[Encoding, int], object]],
    rounds: int,
) -> list[tuple[str, ...]]:
    """Measure our explainer and its peers in turns, and compare the medians."""
    own: list[float] = []
    others: dict[str, list[float]] = {what: [] for what in peers}
    for _ in range(rounds):
        own.append(_ours(model, texts, name))
        for what, explain in peers.items():
            others[what].append(_theirs(texts, explain))
    return [_median_line(what, texts, own, seconds) for what, seconds in others.items()]


def _against_captum(model: Model, texts: Texts, rounds: int) -> list[tuple[str, ...]]:
    """Compare with captum as its documentation shows it, and at its best batch size."""
    from captum.attr import IntegratedGradients, Occlusion

    network = model.network

    def of_embeddings(embeddings: torch.Tensor) -> torch.Tensor:
        return network(inputs_embeds=embeddings).logits

    def integrate(**options: int) -> Callable[[Encoding, int], object]:
        def explain(encoding: Encoding, target: int) -> object:
            embeddings = network.get_input_embeddings()(torch.tensor(encoding.ids)[None])
            return IntegratedGradients(of_embeddings).attribute(
                embeddings, target=target, n_steps=50, **options
            )

        return explain

    def occlude(**options: int) -> Callable[[Encoding, int], object]:
        return _captum(model, Occlusion, sliding_window_shapes=(1,), **options)

    size = _best(texts, lambda b: occlude(perturbations_per_eval=b))
    peers = {
        "occlusion, captum by default": occlude(),
        f"occlusion, captum at its best ({size} rows)": occlude(perturbations_per_eval=size),
    }
    lines = _in_turns(model, texts, "occlusion", peers, rounds)
    ours = _ours(model, texts, "integrated-gradients:baseline=zero")
    size = _best(texts, lambda b: integrate(internal_batch_size=b))
    theirs = _theirs(texts, integrate(internal_batch_size=size))
    lines.append(
        _line(f"integrated gradients, captum at its best ({size} rows)", texts, ours, theirs)
    )
    return lines


def _sampling(model: Model, texts: Texts, rounds: int) -> list[tuple[str, ...]]:
    """Compare what fits a surrogate to samples with captum's, by default and at its best."""
    from captum.attr import KernelShap, Lime

    lines = []
    for name, kind in (("lime", Lime), ("kernel-shap", KernelShap)):

        def sample(rows: int, kind: type = kind) -> Callable[[Encoding, int], object]:
            return _captum(model, kind, n_samples=SAMPLES, perturbations_per_eval=rows)

        size = _best(texts, sample, PERTURBATIONS)
        what = f"{name}, {SAMPLES} samples, captum"
        peers = {
            f"{what} by default": sample(1),
            f"{what} at its best ({size} rows)": sample(size),
        }
        lines += _in_turns(model, texts, f"{name}:samples={SAMPLES}", peers, rounds)
    return lines


def _captum(model: Model, kind: type, **options: object) -> Callable[[Encoding, int], object]:
    """Return captum's explanation of token ids that are replaced by the mask token."""
    network, mask = model.network, model.erasure_token("mask")[1]

    def of_ids(ids: torch.Tensor) -> torch.Tensor:
        attention = torch.ones_like(ids)
        return network(**inputs_of(network, ids, torch.zeros_like(ids), attention)).logits

    def explain(encoding: Encoding, target: int) -> object:
        ids = torch.tensor(encoding.ids)[None]
        with torch.no_grad():
            return kind(of_ids).attribute(ids, baselines=mask, target=target, **options)

    return explain


PEER = """
import json, sys, time, torch
from interpreto import Granularity, Occlusion
from transformers import AutoModelForSequenceClassification, AutoTokenizer
torch.set_num_threads(1)
folder, texts, sizes = json.load(sys.stdin)
network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
def seconds(size, texts):
    method = Occlusion(network, tokenizer, batch_size=size, granularity=Granularity.TOKEN)
    method(texts[:1])
    start = time.process_time()
    for text in texts:
        method([text])
    return (time.process_time() - start) / len(texts)
middle = len(texts) // 2
size = min(sizes, key=lambda s: seconds(s, texts[middle:middle + 1]))
print(json.dumps([size, seconds(size, texts)]))
"""


def _against_interpreto(model: Model, texts: Texts, python: str) -> list[tuple[str, ...]]:
    """Compare with interpreto's occlusion, in its own interpreter, on the same merged weights."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        model.network.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        # Both read the same tokens: what the model truncated is cut from the text.
        written = [e.example.text[: max(end for _, end in e.spans)] for e in texts.encodings]
        done = subprocess.run(
            [python, "-c", PEER],
            input=json.dumps([folder, written, BATCHES]),
            capture_output=True,
            text=True,
            check=True,
        )
    size, theirs = json.loads(done.stdout.strip().splitlines()[-1])
    ours = _ours(model, texts, "occlusion")
    return [_line(f"occlusion, interpreto at its best ({size} rows)", texts, ours, theirs)]


def _shared(model: Model, texts: Texts) -> list[tuple[str, ...]]:
    """Compare ten white-box explainers in one run with the dearest of them alone."""
    alone = {name: _ours(model, texts, name) for name in WHITE_BOX.split(",")}
    dearest = max(alone, key=lambda name: alone[name])
    chosen, session = find_explainers(WHITE_BOX), Session(model)
    start = time.process_time()
    for first in range(0, len(texts.targets), 16):
        part = slice(first, first + 16)
        encodings, targets = texts.encodings[part], texts.targets[part]
        batch = collate(model, encodings, targets, [0] * len(targets))
        for one in chosen:
            attribute(session, one, batch)
        session.drop_passes()
    together = (time.process_time() - start) / len(texts.targets)
    return [
        (
            f"ten white-box explainers together, against {dearest} alone",
            texts.name,
            f"{together:.3f}",
            f"{alone[dearest]:.3f}",
            f"{together / alone[dearest]:.2f} (ours / dearest)",
        )
    ]


def _memory(model: Model, texts: Texts) -> list[tuple[str, ...]]:
    """Measure how far integrated gradients on the longest text raise the resident set."""
    words = " ".join(e.example.text for e in texts.encodings)
    longest = encode(model, Example("longest", words, 0))
    # Linux forgets the peak of the resident set when 5 is written to clear_refs.
    script = (
        "import re, sys, torch; torch.set_num_threads(1)\n"
        "from pathlib import Path\n"
        "from faithbench.models.encoding import collate, encode\n"
        "from faithbench.models.model import load_model\n"
        "from faithbench.models.session import Session\n"
        "from faithbench.run.attribute import attribute\n"
        "from faithbench.explainers.selection import find_explainers\n"
        "from faithbench.core.types import Example\n"
        "model = load_model('bundled:sst2', labels=('negative', 'positive'))\n"
        "(chosen,) = find_explainers('integrated-gradients')\n"
        "def run(text):\n"
        "    e = encode(model, Example('x', text, 0))\n"
        "    attribute(Session(model), chosen, collate(model, [e], [0], [0]))\n"
        "def peak():\n"
        "    status = Path('/proc/self/status').read_text()\n"
        "    return int(re.search(r'VmHWM:\\s+(\\d+)', status)[1])\n"
        "run('a good film'); Path('/proc/self/clear_refs').write_text('5'); before = peak()\n"
        "run(sys.stdin.read()); print(peak() - before)\n"
    )
    import sys

    done = subprocess.run(
        [sys.executable, "-c", script], input=words, capture_output=True, text=True, check=True
    )
    megabytes = int(done.stdout.strip().splitlines()[-1]) / 1024
    what = "integrated gradients, 50 steps: memory above the model"
    return [(what, f"1 text, {len(longest.ids)} tokens", f"{megabytes:.0f} MB", "-", "-")]


if __name__ == "__main__":
    main()
