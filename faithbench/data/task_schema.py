"""The parts of a task file: its three sources of data, and its models. All schemas are closed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from faithbench.core.schema import Closed

Source = Literal["folder", "hub", "bundled"]
Rationale = Literal["human", "proxy", "none"]
Column = Literal["id", "text", "text_b", "label", "answers", "options"]

Split = Annotated[str, Field(pattern="^(train|dev|test)$")]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[StrictInt, Field(ge=1)]
# A plain name cannot climb out of the folder it is looked up in.
Plain = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# A branch or tag can move; only a whole commit pins the data. The one branch let in is where the
# hub keeps its own copy of datasets that are programs, which `datasets` no longer runs.
CONVERTED = "refs/convert/parquet"
Revision = Annotated[str, Field(pattern=rf"^([0-9a-f]{{40}}|{CONVERTED})$")]


class SplitByDigest(Closed):
    """Several splits out of one file: a row goes where the digest of its field `by` says.

    Rows that agree in that field (one article, one premise, one text) stay together, and
    `shares` are percentages, so that a file whose rows change keeps the place of the others.
    """

    by: Text
    shares: dict[Split, Count] = Field(min_length=2)

    @model_validator(mode="after")
    def _shares_make_a_whole(self) -> Self:
        if (total := sum(self.shares.values())) != 100:
            raise ValueError(f"expected shares that add up to 100, found {total}")
        return self

    def split_of(self, value: str) -> str:
        """Return the split that rows with this value of the field belong to."""
        digest = hashlib.sha256(f"derive:{value}".encode(errors="surrogatepass")).digest()
        place = int.from_bytes(digest[:8], "big") % 100
        for split, share in self.shares.items():
            if place < share:
                return split
            place -= share
        raise AssertionError("shares add up to 100")


class FolderSource(Closed):
    """Files `<name>/<stem>.jsonl.gz` under the data folder, with the sums they were tested with.

    `derive` cuts one file into the splits that name it; `rows` says how many rows each split
    of the tested files has; `get` says where the files come from, when they are not there.
    """

    name: Plain
    splits: dict[Split, Plain] = Field(min_length=1)
    derive: dict[Plain, SplitByDigest] = Field(default_factory=dict)
    rows: dict[Split, Count] = Field(default_factory=dict)
    get: str = ""
    sha256: dict[Plain, Sha256] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _files_belong_to_splits(self) -> Self:
        used = list(self.splits.values())
        for key, named in (("sha256", self.sha256), ("derive", self.derive)):
            if stray := sorted(set(named) - set(used)):
                raise ValueError(f"{key} names {', '.join(stray)}, which no split uses")
        if stray := sorted(set(self.rows) - set(self.splits)):
            raise ValueError(f"rows names {', '.join(stray)}, which is no split")
        for stem in dict.fromkeys(used):
            wanted = {split for split, file in self.splits.items() if file == stem}
            there = set(self.derive[stem].shares) if stem in self.derive else wanted
            if len(wanted) > 1 and stem not in self.derive:
                raise ValueError(f"splits {', '.join(sorted(wanted))} are one file: add derive")
            if wanted != there:
                raise ValueError(
                    f"derive.{stem} shares out {', '.join(sorted(there))}, "
                    f"but the splits from that file are {', '.join(sorted(wanted))}"
                )
        return self

    def file(self, root: Path, split: str) -> Path:
        """Return the packed file of a split, or the plain one where only that is there."""
        packed = root / self.name / f"{self.splits[split]}.jsonl.gz"
        plain = packed.with_suffix("")
        return plain if plain.is_file() and not packed.is_file() else packed


class HubSource(Closed):
    """A dataset of the Hugging Face hub; `columns` maps our names to its columns.

    A dot reads inside a column (`answers.text`). Labels are matched by name where the hub's
    names are the task's, else by index; with `values`, by their place in that list, and rows
    of any other label are left out. Rows whose text is blank are left out too. `form` says how
    the hub's rows become ours:

    - `plain`: one row each;
    - `squad`: as plain, with answers as two lists, of texts and of starts;
    - `cloze`: one row per sentence that holds a candidate, as Ghaeini et al. (2019) read the
      Children's Book Test: is the blank's filler in it? Its words are the rationale.
    """

    dataset: Text
    config: str | None = None
    revision: Revision | None = None
    splits: dict[Split, Text] = Field(min_length=1)
    columns: dict[Column, Text]
    values: tuple[StrictInt | str, ...] = ()
    form: Literal["plain", "squad", "cloze"] = "plain"
    rows: dict[Split, Count] = Field(default_factory=dict)
    rationale: Rationale = "none"

    @model_validator(mode="after")
    def _columns_are_enough(self) -> Self:
        needed: dict[str, tuple[Column, ...]] = {
            "plain": ("text", "label"),
            "squad": ("text", "text_b", "answers"),
            "cloze": ("text", "text_b", "answers", "options"),
        }
        wanted = needed[self.form]
        if absent := [name for name in wanted if name not in self.columns]:
            raise ValueError(f"columns must name the hub's column for {' and '.join(absent)}")
        if stray := sorted(set(self.columns) - {*wanted, "id", "text_b"}):
            raise ValueError(f"columns.{stray[0]} is not read with form = {self.form!r}")
        return self

    @property
    def pinned(self) -> bool:
        """Say whether the rows are those of one commit, whenever they are fetched."""
        return self.revision not in (None, CONVERTED)


class BundledSource(Closed):
    """Files under `faithbench/bundled/<task>/`, shipped with the package."""

    splits: dict[Split, Plain] = Field(min_length=1)
    rationale: Rationale = "none"


class ModelRef(Closed):
    """A model by name, e.g. `bundled:sst2` or a hub name at a revision."""

    name: Text
    revision: str | None = None


class PublishedScore(Closed):
    """A score of the task's test split that a paper or a model card reports.

    `metric` is one of the scores of `models.evaluation`; `note` says in what the data differ from
    ours.
    """

    model: Text
    metric: Text
    score: Annotated[float, Field(ge=-1, le=1)]
    source: Text
    note: str = ""
