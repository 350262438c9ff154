"""The grammar `name:key=value`, and settings written back in it."""

from __future__ import annotations

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.spec import parse_explainers, setting_text


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("lime", [("lime", {})]),
        ("lime, gae", [("lime", {}), ("gae", {})]),
        ("lime:samples=5,seed=2,gae", [("lime", {"samples": "5", "seed": "2"}), ("gae", {})]),
        (" lime : samples = 5 ,,", [("lime", {"samples": "5"})]),
        ("captum:Saliency", [("captum:Saliency", {})]),
        ("captum:Saliency:abs=false", [("captum:Saliency", {"abs": "false"})]),
        ("l2e:teacher=lime:samples=64", [("l2e", {"teacher": "lime:samples=64"})]),
        (
            "l2e:form=ranking,teacher=lime:samples=64,gae",
            [("l2e", {"form": "ranking", "teacher": "lime:samples=64"}), ("gae", {})],
        ),
        ("", []),
    ],
)
def test_settings_belong_to_the_name_before_them(
    text: str, entries: list[tuple[str, dict[str, str]]]
) -> None:
    assert parse_explainers(text) == entries


def test_what_is_missing_is_named() -> None:
    with pytest.raises(FaithbenchError, match=r"'seed=1' has no explainer; write name:seed=1"):
        parse_explainers("seed=1")
    with pytest.raises(FaithbenchError, match=r"'seed' of 'lime' has no value; write seed=value"):
        parse_explainers("lime:seed")
    with pytest.raises(FaithbenchError, match=r"'seed=1' has no objective"):
        parse_explainers("seed=1", "objective")


def test_settings_are_written_as_they_are_typed() -> None:
    assert [setting_text(value) for value in (True, False, 3, 0.5, "ones")] == [
        "true",
        "false",
        "3",
        "0.5",
        "ones",
    ]
