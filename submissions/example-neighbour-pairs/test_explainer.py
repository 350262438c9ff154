from pathlib import Path

from faithbench.plugins import plugins_of_file
from faithbench.testing import check_explainer


def test_it_keeps_the_rules_of_explainers():
    for plugin in plugins_of_file(Path(__file__).with_name("explainer.py")):
        check_explainer(plugin.load()())
