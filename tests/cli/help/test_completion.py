"""What Tab offers, asked for as a shell does."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from faithbench.cli.app import app


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("run --explainer lrp-p", "lrp-partial"),
        ("run -e random,lrp-m", "random,lrp-mask"),
        ("run --task ss", "sst2"),
        ("run --metrics aopc,faith", "aopc,faithfulness"),
        ("run --model bundled:ye", "bundled:yelp"),
        ("compare a b --metric lod", "lodds\nlodds:variant=mask-lrp"),
        ("show explainer roll", "rollout"),
        ("show metric naop", "naopc"),
        ("show task evi", "evinf"),
        ("show model bundled:ag", "bundled:agnews"),
        ("show task nothing-begins-so", ""),
    ],
)
def test_names_are_completed(typed: str, offered: str) -> None:
    asked = {"_FAITHBENCH_COMPLETE": "complete_bash", "COMP_WORDS": f"faithbench {typed}"}
    asked["COMP_CWORD"] = str(len(typed.split()))
    said = CliRunner().invoke(app, [], prog_name="faithbench", env=asked)
    assert said.output.strip() == offered
