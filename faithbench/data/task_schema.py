"""The parts of a task file: a table for each source of data, models, scores. All are closed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    SerializeAsAny,
    StrictInt,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError

from faithbench.core.errors import FaithbenchError
from faithbench.core.papers import paper_of
from faithbench.core.schema import Closed, describe_error
from faithbench.data.sources import find_source, installed_sources

Rationale = Literal["human", "proxy", "none"]
Column = Literal["id", "text", "text_b", "label", "rationale", "answers", "choices", "options"]

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
    `shares` are percentages, so that a file whose rows change keeps the splits of the others.
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
        # The prefix keeps this draw apart from the others by digest ("limit:", "held out:"): one
        # alike would take the same texts. Half a surrogate pair is refused only when rows are read.
        digest = hashlib.sha256(f"derive:{value}".encode(errors="surrogatepass")).digest()
        percent = int.from_bytes(digest[:8], "big") % 100
        for split, share in self.shares.items():
            if percent < share:
                return split
            percent -= share
        raise AssertionError("shares add up to 100")


class SourceTable(Closed):
    """Base of the tables that say where a task's data are; each source has one of its own.

    `splits` maps our splits to what the source calls them, and `rows` says how many rows each has
    in the data that the task was tested with.
    """

    splits: dict[Split, Text] = Field(min_length=1)
    rows: dict[Split, Count] = Field(default_factory=dict)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield what the task's card says of the source, before its splits and its model."""
        yield from ()


class MappedTable(SourceTable):
    """Base of the tables of sources whose rows may have names of their own.

    `columns` maps our names to the source's. A dot reads inside a column (`answers.text`). Labels
    are matched by name where the source's names are the task's, else by index; with `values`, by
    their position in that list, and rows of any other label are left out. Rows whose text is
    blank are left out too. `text_from` names a column with the place where a row's text begins, as
    after the header of a post: what stands before it is not read. `layout` (once called `form`,
    which is still read) says how the source's rows become ours:

    - `plain`: one row each;
    - `squad`: as plain, with answers as two lists, of texts and of starts;
    - `cloze`: one row per sentence that holds a candidate, as Ghaeini et al. (2019) read the
      Children's Book Test: is the blank's filler in it? Its words are the rationale;
    - `typed`: as plain, with a list of types in the label's column and `[start, end, type]` in the
      rationale's: is one of the types in `values` there? Spans of these types are the rationale.
    """

    key: ClassVar[str]  # the table's name in a task file

    columns: dict[Column, Text] = Field(default_factory=dict)
    values: tuple[StrictInt | str, ...] = ()
    text_from: str = ""
    layout: Literal["plain", "squad", "cloze", "typed"] = Field(
        default="plain", validation_alias=AliasChoices("layout", "form")
    )

    @model_validator(mode="after")
    def _columns_are_read(self) -> Self:
        read = (*_NEEDED[self.layout], "id", "text_b", "rationale", "choices")
        if stray := sorted(set(self.columns) - set(read)):
            raise ValueError(f"columns.{stray[0]} is not read with layout = {self.layout!r}")
        if self.layout == "typed" and not self.values:
            raise ValueError("layout = 'typed' asks for the types it looks for, in values")
        return self

    def columns_of(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the column of this row that each of our names is read from."""
        return {str(ours): column for ours, column in self.columns.items()}

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the columns, where some are mapped."""
        if self.columns:
            yield "columns", ", ".join(f"{ours} = {its}" for ours, its in self.columns.items())
        if self.text_from:
            yield "text", f"from {self.text_from} on"


_NEEDED: dict[str, tuple[Column, ...]] = {
    "plain": ("text", "label"),
    "squad": ("text", "text_b", "answers"),
    "cloze": ("text", "text_b", "answers", "options"),
    "typed": ("text", "label", "rationale"),
}
"""The names of ours that each layout reads."""


class FolderTable(MappedTable):
    """Files `<name>/<stem>.jsonl.gz` under the data folder, with the sums they were tested with.

    Names that `columns` does not map are read as they are. `derive` cuts one file into the splits
    that name it, by a field under the file's own name; `get` says where the files come from, when
    they are not there.
    """

    key = "folder"

    name: Plain
    splits: dict[Split, Plain] = Field(min_length=1)
    derive: dict[Plain, SplitByDigest] = Field(default_factory=dict)
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
            splits = {split for split, file in self.splits.items() if file == stem}
            shared = set(self.derive[stem].shares) if stem in self.derive else splits
            if len(splits) > 1 and stem not in self.derive:
                raise ValueError(f"splits {', '.join(sorted(splits))} are one file: add derive")
            if splits != shared:
                raise ValueError(
                    f"derive.{stem} shares out {', '.join(sorted(shared))}, "
                    f"but the splits from that file are {', '.join(sorted(splits))}"
                )
        return self

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the folder's name, how files are cut, which are pinned, and where to get them."""
        yield "folder", self.name
        for stem, derived in self.derive.items():
            shares = ", ".join(f"{split} {share}%" for split, share in derived.shares.items())
            yield "cut", f"{stem} by {derived.by}: {shares}"
        yield "checksums", ", ".join(sorted(self.sha256)) or "none: not pinned"
        yield from super().facts()
        if self.get:
            yield "get", self.get

    @property
    def maps(self) -> bool:
        """Return whether rows are under other names, or of another form, than ours."""
        return bool(self.columns or self.values or self.text_from or self.layout != "plain")

    def columns_of(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the mapped columns, and the others of our names that the row has itself."""
        taken = {column.partition(".")[0] for column in self.columns.values()}
        own = {name: name for name in get_args(Column) if name in row and name not in taken}
        if "text_a" in row and "text_a" not in taken:
            own.setdefault("text", "text_a")
        return own | self.columns

    def file(self, root: Path, split: str) -> Path:
        """Return the packed file of a split, or the plain one where only that is there."""
        packed = root / self.name / f"{self.splits[split]}.jsonl.gz"
        plain = packed.with_suffix("")
        return plain if plain.is_file() and not packed.is_file() else packed


class HubTable(MappedTable):
    """A dataset of the Hugging Face hub, of which every column that is read is named."""

    key = "hub"

    dataset: Text
    config: str | None = None
    revision: Revision | None = None
    columns: dict[Column, Text]
    rationale: Rationale = "none"

    @model_validator(mode="after")
    def _columns_are_enough(self) -> Self:
        if absent := [name for name in _NEEDED[self.layout] if name not in self.columns]:
            raise ValueError(f"columns must name the hub's column for {' and '.join(absent)}")
        return self

    @property
    def pinned(self) -> bool:
        """Return whether the rows are those of one commit, whenever they are fetched."""
        return self.revision not in (None, CONVERTED)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the dataset, its revision and its columns."""
        yield "dataset", f"{self.dataset}, {self.config}" if self.config else self.dataset
        yield "revision", f"{self.revision or 'main'}{'' if self.pinned else ' (unpinned)'}"
        yield from super().facts()


class BundledTable(SourceTable):
    """Files under `faithbench/data/bundled/<task>/`, shipped with the package."""

    splits: dict[Split, Plain] = Field(min_length=1)
    rationale: Rationale = "none"


class SourceTables(Closed):
    """The tables of the sources in `data/sources`, in the order in which `auto` tries them.

    `sources` holds the tables of sources that other packages bring.
    """

    folder: FolderTable | None = None
    hub: HubTable | None = None
    bundled: BundledTable | None = None
    sources: dict[str, SerializeAsAny[SourceTable]] = Field(default={})

    @field_validator("sources", mode="before")
    @classmethod
    def _read_by_their_own_schema(cls, tables: object) -> object:
        if not isinstance(tables, dict):
            return tables
        return {name: _installed_table(name, table) for name, table in tables.items()}

    @property
    def tables(self) -> dict[str, SourceTable]:
        """Return the tables that are given, by the names of their sources."""
        built_in = {name: getattr(self, name) for name in TABLES}
        given = {name: table for name, table in built_in.items() if table is not None}
        return given | self.sources


TABLES: dict[str, type[SourceTable]] = {
    name: get_args(field.annotation)[0]  # of `FolderTable | None`
    for name, field in SourceTables.model_fields.items()
    if name != "sources"
}


def _installed_table(name: str, table: object) -> SourceTable:
    if name not in installed_sources():
        raise ValueError(
            f"no installed package brings a source {name!r}; there are "
            f"{', '.join(installed_sources()) or 'none'}"
        )
    try:
        given: SourceTable = find_source(name).table.model_validate(table)
    except ValidationError as error:
        raise ValueError(f"{name}: {describe_error(error)}") from error
    return given


def source_names() -> tuple[str, ...]:
    """Return the names of all sources in the order in which `auto` tries them."""
    return (*TABLES, *installed_sources())


def _known_source(name: str) -> str:
    # Packages are only looked through for a name that is not built in.
    if name not in TABLES and name not in installed_sources():
        *names, last = map(repr, source_names())
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(names)} or {last}"})
    return name


SourceName = Annotated[
    str,
    AfterValidator(_known_source),
    # A published schema does not depend on what is installed where it is written.
    WithJsonSchema({"enum": list(TABLES), "type": "string"}),
]
"""The name of a source: one of ours, or of an installed package."""


def _known_paper(text: str) -> str:
    try:
        paper_of(text)
    except FaithbenchError as error:
        raise ValueError(str(error)) from error
    return text


PaperText = Annotated[str, AfterValidator(_known_paper)]
"""The key of one of our papers, or an entry of BibTeX."""


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
