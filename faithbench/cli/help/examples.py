"""Two ways to call each command, shown at the end of its help."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "run": (
        "faithbench run --explainer lrp-mask --task sst2",
        "faithbench run -e deep-shap,lime:samples=64 -t imdb --data DATA --limit 50 \\",
        "    --metrics faithfulness --html report.html",
    ),
    "merge": (
        "faithbench merge shards/*",
        "faithbench merge results/shard-1-of-2 results/shard-2-of-2 --results all",
    ),
    "compare": (
        "faithbench compare lrp-mask attention --task sst2",
        "faithbench compare deep-shap lime -t imdb --metric aopc --html page.html",
    ),
    "compare-models": (
        "faithbench compare-models models/plain models/saloss --task sst2",
        "faithbench compare-models models/a models/b -t litbank --by-class",
    ),
    "explain": (
        'faithbench explain --explainer attention,deep-shap --text "A dull film."',
        'faithbench explain -e gradient --text "Not bad at all." --html out.html',
    ),
    "train": (
        "faithbench train --task sst2 --data DATA",
        "faithbench train -t sst2 --data DATA --objective saloss:weight=0.01",
    ),
    "distil": (
        "faithbench distil --teacher deep-shap --task sst2 --data DATA",
        "faithbench distil --teacher lime:samples=64 -t agnews --data DATA --limit 500",
    ),
    "fresh": (
        "faithbench fresh --explainer attention --task sst2 --data DATA",
        "faithbench fresh -e deep-shap,random -t semeval --data DATA --limit 1000",
    ),
    "heads": (
        "faithbench heads --task sst2 --data DATA",
        "faithbench heads --task imdb --data DATA --coarse --max-tokens 256",
    ),
    "reproduce": (
        "faithbench reproduce",
        "faithbench reproduce mask-lrp/table-1 --data DATA --limit 50",
    ),
    "cite": (
        "faithbench cite results/sst2 > papers.bib",
        "faithbench cite --explainer lrp-mask,lime --task sst2 --metrics aopc",
    ),
    "doctor": (
        "faithbench doctor",
        "FAITHBENCH_DATA=DATA faithbench doctor",
    ),
    "study sparse-attention": (
        "faithbench study sparse-attention --task sst2 --data DATA",
        "faithbench study sparse-attention --task sst2,news20 --data DATA --seeds 1",
    ),
    "list tasks": ("faithbench list tasks", "faithbench list tasks --data DATA"),
    "list explainers": (
        "faithbench list explainers",
        "faithbench list explainers | grep shap",
    ),
    "list metrics": ("faithbench list metrics", "faithbench list metrics --plugin mine.py"),
    "list objectives": ("faithbench list objectives", "faithbench list objectives | grep saloss"),
    "show explainer": (
        "faithbench show explainer lrp-mask",
        "faithbench show explainer my-own --plugin mine.py",
    ),
    "show metric": ("faithbench show metric aopc", "faithbench show metric mine --plugin mine.py"),
    "show model": ("faithbench show model bundled:sst2", "faithbench show model models/saloss"),
    "show objective": ("faithbench show objective saloss", "faithbench show objective saliency"),
    "show task": ("faithbench show task sst2", "faithbench show task evinf --data DATA"),
    "leaderboard run": (
        "faithbench leaderboard run --data DATA",
        "faithbench leaderboard run --data DATA --only sst2",
    ),
    "leaderboard build": (
        "faithbench leaderboard build",
        "faithbench leaderboard build --records results/records --out board",
    ),
    "leaderboard check": (
        "faithbench leaderboard check",
        "faithbench leaderboard check --out board",
    ),
    "leaderboard export": (
        "faithbench leaderboard export",
        "faithbench leaderboard export --format parquet --out board.parquet",
    ),
    "leaderboard complete": (
        "faithbench leaderboard complete --data DATA",
        "faithbench leaderboard complete --data DATA --only sst2",
    ),
    "leaderboard upgrade": (
        "faithbench leaderboard upgrade",
        "faithbench leaderboard upgrade --records leaderboard/records",
    ),
    "leaderboard publish": (
        "faithbench leaderboard publish --results results",
        "faithbench leaderboard publish --results results --records leaderboard/records",
    ),
    "leaderboard ranking": (
        "faithbench leaderboard ranking",
        "faithbench leaderboard ranking --test nemenyi",
    ),
    "leaderboard power": (
        "faithbench leaderboard power",
        "faithbench leaderboard power --table sst2-folder --metric aopc",
    ),
    "submission new": (
        "faithbench submission new my-method",
        "faithbench submission new my-scores --kind attributions",
    ),
    "submission run": (
        "faithbench submission run submissions/my-method --task sst2",
        "faithbench submission run all --task sst2",
    ),
    "submission score": (
        "faithbench submission score submissions/my-scores",
        "faithbench submission score all --data DATA",
    ),
    "submission check": (
        "faithbench submission check submissions/my-method",
        "faithbench submission check all --no-model",
    ),
    "submission held-out": (
        "faithbench submission held-out submissions/my-method",
        "faithbench submission held-out all --data DATA --sentences 200",
    ),
    "submission planted": (
        "faithbench submission planted submissions/my-method",
        "faithbench submission planted all --texts 50 --seed 7",
    ),
    "submission regenerate": (
        "faithbench submission regenerate",
        "faithbench submission regenerate --strict",
    ),
    "submission preview": (
        "faithbench submission preview submissions/my-method",
        "faithbench submission preview all",
    ),
    "submission scope": (
        "git diff --raw -z --no-renames main | faithbench submission scope",
        "git diff --raw -z --no-renames main | faithbench submission scope --existing",
    ),
}
