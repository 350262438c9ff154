"""`faithbench fresh` from its options to its table."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from faithbench.cli.training.fresh import _blocks
from faithbench.stats.signed_rank import PairedTest
from faithbench.training.fresh.study import ArmScore, ArmTest, FreshReport
from tests.support.commands import Call, complaint
from tests.support.fresh import put_study, put_task, request_of

WORDS = ("fresh", "--explainer", "attention", "--task", "mini.toml", "--data", ".")


def test_from_options_to_a_table_and_records(call: Call, tmp_path: Path) -> None:
    put_study(tmp_path)
    said = call(
        *(*WORDS, "--model", "tiny-bert", "--base", "tiny-bert", "--device", "cpu"),
        *("--select", "contiguous", "--seeds", 1, "--epochs", 1, "--controls", "random"),
        *("--limit", 8, "--dev-limit", 3, "--test-limit", 6, "--out", "here", "--records", "there"),
    )
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert "FRESH on mini: contiguous, 40% of the words" in lines
    assert "8 train, 3 dev and 6 test texts, 1 seed" in lines
    (row,) = [line.split() for line in lines if re.match("attention +tiny-bert", line)]
    assert row[1:3] == ["tiny-bert", "2.0"] and row[4] == "-"
    assert max(len(line) for line in lines if not line.startswith("record: ")) <= 80
    found = re.findall(
        r"^record: (there/.*/(?:attention|random-words)-\w{8}\.json)$", said.out, re.M
    )
    assert len(found) == 2 and all((tmp_path / path).is_file() for path in found)
    assert len(list((tmp_path / "here" / "models").glob("*/card.json"))) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ratio", "0"), "--ratio 0 should be a share of the words: above 0, at most 1"),
        (("--ratio", "1.5"), "--ratio 1.5 should be a share of the words: above 0, at most 1"),
        (("--select", "top"), "no selection of words named 'top'; did you mean 'topk'?"),
        (("--form", "code"), "no form of FRESH named 'code'; known: paper, released"),
        (("--task", "squad"), "task squad is of kind qa, and faithbench fresh trains classifiers; "
         "choose a classification or pair task"),
        (("--controls", "none"), "no control named 'none'; known: full, random"),
        (("--explainer", "atention"), "no explainer named 'atention'; did you mean 'attention'?"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    call: Call, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    """Said before a model is looked for: there is none."""
    put_task(tmp_path)
    said = call(*WORDS, "--model", "tiny-bert", *words)
    said = said._replace(out="")  # what was being loaded
    assert complaint(said) == message


def test_a_run_says_which_command_trains(call: Call) -> None:
    said = call("run", "-e", "random", "-t", "sst2", "--metrics", "aopc,fresh_f1_topk")
    assert complaint(said) == (
        "metric 'fresh_f1_topk' is the score of classifiers that a run does not train; "
        "use faithbench fresh --select topk"
    )


def test_long_names_fit_80_columns(tmp_path: Path) -> None:
    from rich.console import Console

    put_study(tmp_path)
    long = "lrp-mask:thresholds=paper,released=true"
    names = [(long, "models/saloss-textrank-0.1"), (long, "models/baseline"), ("random-words", "x")]
    arms = [ArmScore(*name, (0.7, 0.8, 0.9), (1.0,), 4.2) for name in names]
    tests = (
        ArmTest(0, 1, 0.0312, PairedTest(1e-9, 1.0, 400)),
        ArmTest(0, 2, None, PairedTest(None, 0, 1)),
    )
    report = FreshReport(tuple(arms), tests, (6920, 872, 1821))
    console = Console(width=80, record=True, file=io.StringIO())
    for block in _blocks(request_of(tmp_path, seeds=3), report):
        console.print(block)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "0.800" in text and "0.100" in text and "0.031" in text and "1e-09" in text
    assert "p, 3+3 seeds" in text and "p, 1821 texts" in text
