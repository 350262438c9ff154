"""The worker: it gives the scores that a run would give, and words for what goes wrong."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate
from faithbench.models.predictions import predictions
from faithbench.run.attribute import attribute, seed_of
from faithbench.submissions.entry import read_entry
from faithbench.submissions.measure import Setup
from faithbench.submissions.sandbox import client, worker
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import Failed, Ready, Request, Scores
from faithbench.submissions.scaffold import new_submission

Make = Callable[..., Request]
RANDOM = """
import numpy as np
from dataclasses import dataclass
from typing import ClassVar
import torch
from faithbench import explainer

@explainer("my-x")
@dataclass(frozen=True)
class Drawn:
    stochastic: ClassVar[bool] = True
    def __call__(self, session, batch):
        draw = lambda seed: np.random.default_rng(seed).normal(size=batch.ids.shape[1])
        return torch.tensor(np.stack([draw(seed) for seed in batch.seeds]))
"""


@pytest.fixture
def make_request(tmp_path: Path, small_setup: Setup) -> Make:
    """Make a request for the explainer of a new submission, whose code may be replaced."""

    def make(code: str | None = None, **changes: object) -> Request:
        folder = new_submission(tmp_path, "my-x", "plugin")
        if code is not None:
            (folder / "explainer.py").write_text(code)
        predicted = predictions(small_setup.session.engine, small_setup.encodings)
        targets = [prediction.target for prediction in predicted]
        entry = read_entry(folder).model_copy(update=changes)
        file = folder / "explainer.py"
        return client._request(file, entry, small_setup, targets, range(3), Limits())

    return make


def scores_of(request: Request) -> dict[str, tuple[tuple[float, ...], ...]]:
    model, encodings = worker._load(request)
    return {message.id: message.scores for message in worker._explain(request, model, encodings)}


def test_scores_are_those_of_a_run(make_request: Make, small_setup: Setup) -> None:
    request = make_request(settings={"scale": 2.0})
    scores = scores_of(request)
    (occlusion,) = find_explainers("occlusion")  # the new submission's own formula
    encodings = small_setup.encodings
    targets = [question.target for question in request.examples]
    seeds = [seed_of(0, encoding.example.id) for encoding in encodings]
    batch = collate(small_setup.model, encodings, targets, seeds)
    for attribution in attribute(small_setup.session, occlusion, batch):
        (under_one_seed,) = scores.pop(attribution.encoding.example.id)
        assert under_one_seed == pytest.approx(2 * attribution.scores, abs=1e-6)
    assert scores == {}


def test_one_that_draws_at_random_runs_under_every_seed(
    make_request: Make, small_setup: Setup
) -> None:
    for name, lists in scores_of(make_request(RANDOM)).items():
        (size,) = [int(e.erasable.sum()) for e in small_setup.encodings if e.example.id == name]
        assert [len(scores) for scores in lists] == [size] * 3
        assert len(set(lists)) == 3


def test_other_weights_are_refused(make_request: Make) -> None:
    request = make_request().model_copy(update={"model_sha256": "0" * 64})
    with pytest.raises(FaithbenchError, match="bundled:sst2 changed while it was read"):
        worker._load(request)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"explainer": "my-y"}, "did you mean 'my-x'"),
        ({"settings": {"scal": 2.0}}, "did you mean 'scale'"),
        ({"settings": {"scale": "much"}}, "scale is a number, found 'much'"),
    ],
)
def test_an_entry_that_does_not_fit_the_file_is_told(
    make_request: Make, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(FaithbenchError, match=message):
        worker._select(make_request(**changes))


def wrapped(cause: Exception) -> FaithbenchError:
    try:
        raise FaithbenchError("explainer 'x' failed on example 'a'") from cause
    except FaithbenchError as error:
        return error


HINT = "; an explainer may not start processes, use the network, or touch other files"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FaithbenchError("a sentence"), "a sentence"),
        (ValueError("no"), "ValueError: no"),
        (SystemExit(3), "SystemExit: 3"),
        (PermissionError(1, "no"), f"PermissionError: [Errno 1] no{HINT}"),
        (wrapped(PermissionError()), f"explainer 'x' failed on example 'a'{HINT}"),
        (wrapped(KeyError("x")), "explainer 'x' failed on example 'a'"),
        (ValueError("x" * 5000), "ValueError: " + "x" * 1988),
    ],
)
def test_a_failure_is_a_message(error: BaseException, message: str) -> None:
    assert worker._failure(error) == Failed(error=message)


def test_messages_are_lines_of_json_however_long() -> None:
    receive, send = os.pipe()
    message = Scores(id="a", scores=(tuple(float(i) for i in range(50_000)),))

    def write() -> None:
        worker._send(send, Ready(ready=True))
        worker._send(send, message)  # more than a pipe holds
        os.close(send)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(receive, "rb") as pipe:
        first, second = pipe.read().splitlines()
    thread.join()
    assert first == b'{"ready":true}'
    assert Scores.model_validate_json(second, strict=True) == message
