"""One text of one's own: words are sums of tokens, and the answer is the run's answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.one_text import explain_text, word_scores
from tests.support.builders import make_task, put


def test_a_word_is_the_sum_of_its_tokens(tiny_model: Any) -> None:
    encoding = encode(tiny_model(), Example("e", "The films isn't greatly dull.", 0))
    # the film ##s isn ' t great ##ly dull . : the tokenizer does not know "isn" or "t".
    assert len(encoding.ids[encoding.erasable]) == 10
    scores = np.array([0.5, 1.0, -0.25, 2.0, 0.5, -3.5, 0.125, 0.125, -4.0, 0.0])
    assert word_scores(encoding, scores) == (
        ("dull", -4.0),
        ("isn't", -1.0),
        ("films", 0.75),
        ("The", 0.5),
        ("greatly", 0.25),
        (".", 0.0),
    )


def test_a_word_said_twice_stays_two(tiny_model: Any) -> None:
    encoding = encode(tiny_model(), Example("e", "good good", 0))
    # Equal strength: the earlier word first.
    assert word_scores(encoding, np.array([-1.0, 1.0])) == (("good", -1.0), ("good", 1.0))


def test_words_of_a_pair_come_from_their_own_text(tiny_model: Any) -> None:
    example = Example("e", "good film", 0, "the plots")
    both = encode(tiny_model(), example, "both")
    scores = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert word_scores(both, scores) == (
        ("plots", 9.0),
        ("the", 3.0),
        ("film", 2.0),
        ("good", 1.0),
    )
    second = encode(tiny_model(), example, "text_b")
    assert word_scores(second, scores[:3]) == (("plots", 5.0), ("the", 1.0))


def test_explanation_says_what_the_network_says(tiny_model: Any) -> None:
    model, text = tiny_model(), "the film is not very good"
    (chosen,) = find_explainers("attention")
    said = explain_text(Session(model), "text", chosen, text, None, seed=0)
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        answer = torch.softmax(model.network(ids).logits, dim=-1)[0].numpy()
        attention = model.eager()(ids, output_attentions=True).attentions[-1][0].mean(dim=0)
    assert said.said == tiny_model().labels[int(answer.argmax())]
    assert said.attribution.target == int(answer.argmax())
    assert said.probability == pytest.approx(float(answer.max()), abs=1e-9)
    assert said.attribution.scores == pytest.approx(attention[0, 1:-1].numpy(), abs=1e-9)
    words = dict(said.words)
    assert [words[w] for w in text.split()] == pytest.approx(said.attribution.scores)
    assert [abs(s) for _, s in said.words] == sorted((abs(s) for _, s in said.words), reverse=True)


def test_the_seed_is_the_one_of_a_run_on_that_text(tmp_path: Path, tiny_model: Any) -> None:
    put(tmp_path, [{"id": "your text", "text": "a great film", "label": 0}])
    (chosen,) = find_explainers("random")
    job = Job(
        load_dataset(make_task(), folder=tmp_path),
        tiny_model(),
        (chosen,),
        find_metrics("aopc"),
        tmp_path / "results",
    )
    for seed in (0, 5):
        said = explain_text(Session(tiny_model()), "text", chosen, "a great film", None, seed)
        (outcome,) = run(replace(job, seed=seed), lambda *_: None)
        assert said.attribution.scores == pytest.approx(outcome.rows[0].scores, rel=1e-6)
    zero = explain_text(Session(tiny_model()), "text", chosen, "a great film", None, 0)
    assert not np.allclose(zero.attribution.scores, said.attribution.scores)


def test_a_text_the_model_cannot_read(tiny_model: Any) -> None:
    (chosen,) = find_explainers("random")
    with pytest.raises(FaithbenchError, match="finds only unknown characters in 'xyz'"):
        explain_text(Session(tiny_model()), "text", chosen, "xyz", None, 0)
