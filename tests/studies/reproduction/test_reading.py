"""Recipes are read, and wrong ones refused in one line that says what to fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.studies.reproduction.reading import read_recipe
from tests.studies.reproduction import CLAIM, HEAD, MODEL, TABLE, put_recipe

WHOLE = HEAD + MODEL + TABLE + CLAIM
HIGHER = 'greater = ["A | AOPC", "B | AOPC"]'
TAU = 'correlation = { of = ["A | AOPC", "B | AOPC", "A | LOdds"], by = [1, 2, 3], sign = "%s" }'


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed('task = "sst2"', 'task = "sst3"'), "no task named 'sst3'; did you mean 'sst2'?"),
        (
            changed('model = "net"', 'model = "nett"'),
            "table-1: no model of the recipe named 'nett'; did you mean 'net'?",
        ),
        (changed('model = "net", ', ""), "table-1 has a cell without a model"),
        (
            changed('"attention"', '"atention"'),
            "table-1: no explainer named 'atention'; did you mean 'attention'?",
        ),
        (changed('"random"', '""'), "table-1, cell 'B | AOPC' has no explainer"),
        (changed('"random"', '"seed=3"'), "setting 'seed=3' has no explainer"),
        (
            changed('"aopc"', '"aopcc"'),
            "table-1, cell 'A | AOPC': no metric named 'aopcc'; did you mean 'aopc'?",
        ),
        (changed(', metric = "aopc"', ""), "table-1, cell 'A | AOPC' has no metric"),
        (
            changed('"lodds"', '"lodds", label = "positiv"'),
            "table-1, cell 'A | LOdds': no label named 'positiv'; did you mean 'positive'?",
        ),
        (
            changed("bundled =", 'only = "mixed"\nbundled ='),
            "no label of task sst2 named 'mixed'; known: negative, positive",
        ),
        (changed("title", "titel"), "key 'title': Field required (and 1 more)"),
        (changed("explainer", "explain"), "unknown key 'items.0.rows.0.explain'"),
        (changed("[0.25, -0.5]", "[0.25]"), "table-1: printed of row 'B' has 1 numbers for 2"),
        (changed(", [0.25, -0.5]", ""), "table-1: printed has 1 rows for 2"),
        (changed("0.25, -0.5", '"?", -0.5'), "key 'items.0.printed.1.0.float': Input should be"),
        (
            changed("printed", 'spread = [["-"], ["-", "-"]]\nprinted'),
            "table-1: spread of row 'A' has 1 numbers for 2 columns",
        ),
        (changed('name = "B"', 'name = "A"'), "table-1 has two rows named 'A'"),
        (changed('name = "LOdds"', 'name = "AOPC"'), "table-1 has two columns named 'AOPC'"),
        (
            changed('"B | AOPC"', '"C | AOPC"'),
            "table-1, claim 'A has the higher AOPC.': no cell named 'C | AOPC'; did you mean",
        ),
        (
            changed("0.25, -0.5", '"-", -0.5'),
            "table-1, claim 'A has the higher AOPC.': no cell named 'B | AOPC'",
        ),
        (
            changed(HIGHER, TAU % "positive"),
            "table-1, claim 'A has the higher AOPC.': correlation goes with tau",
        ),
        (
            changed("signed-rank", "tau"),
            "table-1, claim 'A has the higher AOPC.': correlation goes with tau",
        ),
        (
            changed('"signed-rank"\n' + HIGHER, '"tau"\n' + (TAU % "positive").replace(", 3]", "]"))
            + "",
            "key 'items.0.claims.0.correlation.by': Tuple should have at least 3 items",
        ),
        (
            changed(
                '"signed-rank"\n' + HIGHER, '"tau"\n' + (TAU % "positive").replace("3]", "3, 4]")
            ),
            "table-1, claim 'A has the higher AOPC.': of and by differ in length",
        ),
        (
            changed('"signed-rank"\n' + HIGHER, '"tau"\n' + TAU % "up"),
            "key 'items.0.claims.0.correlation.sign': Input should be 'positive' or 'negative'",
        ),
        (
            changed("signed-rank", "interval"),
            "table-1, claim 'A has the higher AOPC.': same and not_above go with interval",
        ),
        (changed("greater", "same"), "key 'items.0.claims.0': Value error, same and not_above go"),
        (changed("greater", "not_above"), "claims.0': Value error, same and not_above go together"),
        (
            changed(HIGHER, HIGHER + "\nwithin = 0.1"),
            "key 'items.0.claims.0': Value error, same and not_above go together with within",
        ),
        (
            changed(HIGHER, 'count_of = [{ greater = ["A | AOPC", 0] }]'),
            "key 'items.0.claims.0': Value error, count_of and at_least go together",
        ),
        (
            changed(HIGHER, ""),
            "key 'items.0.claims.0': Value error, needs exactly one of less, greater, same, "
            "not_above, correlation, all_of, count_of, found none",
        ),
        (changed(HIGHER, HIGHER + '\nless = ["A | AOPC", 1]'), "found ['less', 'greater']"),
        (changed("signed-rank", "wilcoxon"), "key 'items.0.claims.0.test': Input should be"),
        (WHOLE + TABLE, "two items are called 'table-1'"),
        (changed("table-1", "tab-1"), "key 'items.0.id': String should match pattern"),
        (changed("mini", "A paper"), "key 'paper': String should match pattern"),
        (
            changed("[[items]]", '[models.net.train]\narch = "cnn"\n[[items]]'),
            "key 'models.net': Value error, a model is bundled or trained, not both",
        ),
        (
            changed('bundled = "bundled:sst2"\n', ""),
            "key 'models.net': Value error, needs bundled, train or hub: where the model comes",
        ),
        (
            changed('title = "Two methods"', 'title = "Two methods"\nkind = "maps"'),
            "table-1: kind = 'maps' and the table maps go together",
        ),
        (changed("rows = [{ name", "rows = []\nmore = [{ name"), "unknown key 'items.0.more'"),
        (HEAD + MODEL, "key 'items': Field required"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = put_recipe(tmp_path, text)
    with pytest.raises(FaithbenchError) as caught:
        read_recipe(path)
    message = str(caught.value)
    assert message.startswith(f"recipe {path}: ") and message.endswith("; fix it there")
    assert said in message and "\n" not in message


MAPS = """\
[[items]]
id = "figure-2"
title = "Texts"
kind = "maps"
maps = { models = ["net"], explainers = ["attention"] }
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"net"', '"nett"', "figure-2: no model of the recipe named 'nett'"),
        ('"attention"', '"attention", "atention"', "figure-2: no explainer named 'atention'"),
        ('["attention"]', "[]", "key 'items.0.maps.explainers': Tuple should have at least 1"),
        ('["net"]', "[]", "key 'items.0.maps.models': Tuple should have at least 1"),
    ],
)
def test_wrong_maps_are_refused_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = put_recipe(tmp_path, HEAD + MODEL + MAPS.replace(old, new))
    with pytest.raises(FaithbenchError) as caught:
        read_recipe(path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('measure = "model", metric = "aopc"', "cell 'A | x': no metric named 'aopc'; known: acc"),
        ('measure = "saliency", metric = "word_level"', "no metric named 'word_level'; did you"),
        ('measure = "heads", metric = "peak_nsub"', "no metric named 'peak_nsub'; did you mean"),
        ('measure = "pair", metric = "both"', "cell 'A | x' needs teacher and form"),
        (
            'measure = "pair", metric = "both", teacher = "ocl", form = "ranking"',
            "table-1: no explainer named 'ocl'",
        ),
        ('who = "student", metric = "aopc"', "cell 'A | x' needs teacher and form"),
        ('measure = "fresh", metric = "fresh_f1_topk"', "cell 'A | x' has no explainer"),
        ('measure = "study", metric = "own_share"', "needs task, arch, projection and metric"),
        ('explainer = "attention", metric = "aopc@35"', "no metric named 'aopc@35'"),
        ('explainer = "attention", metric = "pos:NOUNS"', "did you mean 'pos:NOUN'?"),
        ('measure = "speed"', "key 'items.0.rows.0.measure': Input should be"),
    ],
)
def test_every_measure_says_what_its_cells_lack(tmp_path: Path, cell: str, said: str) -> None:
    table = f"""\
[[items]]
id = "table-1"
title = "One cell"
rows = [{{ name = "A", model = "net", {cell} }}]
columns = [{{ name = "x" }}]
printed = [[1]]
"""
    path = put_recipe(tmp_path, HEAD + MODEL + table)
    with pytest.raises(FaithbenchError) as caught:
        read_recipe(path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", ['task = "sst3"', 'arch = "lstm"', 'projection = "entmax"'])
def test_a_cell_of_the_study_names_what_there_is(tmp_path: Path, wrong: str) -> None:
    facts = ['task = "sst2"', 'arch = "bilstm"', 'projection = "softmax"', 'metric = "own_share"']
    key = wrong.partition(" ")[0]
    cell = ", ".join([fact for fact in facts if not fact.startswith(key)] + [wrong])
    table = f"""\
[[items]]
id = "table-1"
title = "One cell"
rows = [{{ name = "A", measure = "study", {cell} }}]
columns = [{{ name = "x" }}]
printed = [[1]]
"""
    path = put_recipe(tmp_path, HEAD + table)
    with pytest.raises(FaithbenchError, match="table-1"):
        read_recipe(path)


def test_what_is_printed_is_a_number(tmp_path: Path) -> None:
    path = put_recipe(tmp_path, changed("0.25, -0.5", "nan, -0.5"))
    with pytest.raises(FaithbenchError, match="finite"):
        read_recipe(path)


@pytest.mark.parametrize(
    "content", [b"paper = [", b"paper", b"\xff", b"a = 1\na = 2", b"a = " + b"9" * 5000]
)
def test_a_file_that_is_no_toml_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cut.toml"
    path.write_bytes(content)
    for place in (path, tmp_path / "nowhere.toml"):
        with pytest.raises(FaithbenchError) as caught:
            read_recipe(place)
        message = str(caught.value)
        assert message.startswith(f"cannot read recipe {place}: ") and "\n" not in message


@pytest.mark.parametrize(
    "statement",
    [
        "all_of = []",
        'greater = ["A | AOPC", "B | AOPC"]\neach = { x = [] }',
        'count_of = [{ greater = ["A | AOPC", "B | AOPC"] }]\nat_least = 2',
        'all_of = [{ count_of = [{ greater = ["A | AOPC", "B | AOPC"] }], at_least = 2 }]',
    ],
)
def test_a_claim_that_can_only_come_out_one_way_is_refused(tmp_path: Path, statement: str) -> None:
    """Of nothing, all holds; and two of one never do."""
    path = put_recipe(tmp_path, changed(HIGHER, statement))
    with pytest.raises(FaithbenchError, match="claim"):
        read_recipe(path)
