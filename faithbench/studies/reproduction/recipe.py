"""A paper as a file: its tables cell by cell, the numbers it printed, and its claims.

Recipes hold no code. A table is a grid: each cell is what the table, its column and its row say
together. All schemas are closed, and a wrong recipe is refused in one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, model_validator

from faithbench.core.files import digest_of
from faithbench.core.schema import Closed
from faithbench.studies.reproduction.claims import ClaimSpec, Positive, Text

Measure = Literal["explanation", "model", "saliency", "fresh", "pair", "study", "heads"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Number = Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictInt
NONE = "-"
"""Stands in a table where the paper prints no number."""
OWN = "+"
"""Stands in a table for a cell that is ours: measured, though the paper has no such number."""
CELL = " | "
"""Between the row and the column of a cell that a claim names."""


class Training(Closed):
    """How a model of a recipe is trained, where it does not come with faithbench.

    `limit` is the most training texts, `dev_limit` the most that choose the epoch. The others are
    options of `faithbench train`.
    """

    objectives: tuple[Text, ...] = ()
    arch: str = ""
    vectors: str = "minilm"
    width: int = 0
    epochs: Positive = 1
    limit: Positive | None = None
    dev_limit: Positive | None = 500
    max_tokens: Positive | None = None
    batch_size: Positive = 32
    learning_rate: float | None = None
    dropout: float = 0.0
    encoder_dropout: float = 0.0


class HubSpec(Closed):
    """A model on the hub; `task` and `only` say on what it is explained, if not as its stand-in."""

    name: Text
    task: str = ""
    only: str = ""


class ModelSpec(Closed):
    """A model that cells explain: the paper's own on the hub, and what stands for it here.

    `stands_for` is the paper's model. The stand-in is `bundled`, or is trained by `train` on the
    task's own data under `seeds` seeds; without either, only the hub has the model. `texts` is the
    number of test texts that are explained, `lessons` the number of training texts that students
    learn from, and `only` a label of the task that all explained texts must have. A `long` one
    takes hours on a CPU, and is made only if that is asked for.
    """

    task: Text
    stands_for: Text
    bundled: str = ""
    hub: HubSpec | None = None
    train: Training | None = None
    seeds: Positive = 1
    texts: Positive = 100
    lessons: Positive = 1000
    only: str = ""
    long: bool = False

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if self.bundled and self.train:
            raise ValueError("a model is bundled or trained, not both")
        if not (self.bundled or self.train or self.hub):
            raise ValueError("needs bundled, train or hub: where the model comes from")
        return self


class Part(Closed):
    """What a table, a column or a row says of its cells.

    `measure` says where the number is from: an explainer's record (`explanation`, which is usual),
    the score of a model (`model`) or its saliency by level (`saliency`), classifiers trained on
    rationales (`fresh`), a student beside its teacher (`pair`), the study of sparse attention
    (`study`), or the statistics of attention heads (`heads`). A `model` may hold `{task}`, which is
    the cell's `task`. `label` keeps only texts of that label. `scale` turns our number into the
    paper's unit: 100 for percent. With `teacher`, `form` and `who`, the explainer is a teacher or
    the student that was distilled from it.
    """

    measure: Measure | None = None
    model: str | None = None
    explainer: str | None = None
    metric: str | None = None
    scale: float | None = None
    label: str | None = None
    teacher: str | None = None
    form: Literal["labelling", "ranking"] | None = None
    who: Literal["student", "teacher", "random"] | None = None
    ratio: float | None = None
    seeds: Positive | None = None
    task: str | None = None
    arch: str | None = None
    projection: str | None = None


class Line(Part):
    """A row or a column: its name in the paper, and what its cells have in common."""

    name: Text


class Maps(Closed):
    """Texts side by side: the first explainer's scores, and how the others differ from it.

    With `models`, one explainer is shown on each of them instead. `texts` examples are drawn, one
    of each class first; `top` marks only so many words.
    """

    models: tuple[str, ...] = Field(min_length=1)
    explainers: tuple[str, ...] = Field(min_length=1)
    texts: Positive = 2
    top: Positive | None = None
    contiguous: float | None = None
    marked: bool = False


class Item(Closed):
    """A table or a figure of the paper.

    `printed` has the numbers of the paper, row by row: "-" where it has none, "+" for a cell of our
    own, which is measured all the same. `spread` has those behind the plus-minus sign. A figure
    prints no number. `ranked` says that rows, or columns, are methods whose order can be compared
    with the paper's, and `chart` how a figure is drawn.
    """

    id: Annotated[str, Field(pattern=r"^(table|figure)-\d+(-\d+)?$")]
    title: Text
    kind: Literal["table", "figure", "maps"] = "table"
    cells: Part = Field(default_factory=Part)
    rows: tuple[Line, ...] = ()
    columns: tuple[Line, ...] = ()
    printed: tuple[tuple[Number | Literal["-", "+"], ...], ...] = ()
    spread: tuple[tuple[Number | Literal["-", "+"], ...], ...] = ()
    ranked: Literal["rows", "columns", ""] = ""
    chart: Literal["lines", "bars", "dots", ""] = ""
    log: bool = False
    claims: tuple[ClaimSpec, ...] = ()
    maps: Maps | None = None
    departs: tuple[Text, ...] = ()
    minutes: float = 1.0

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.kind == "maps") != (self.maps is not None):
            raise ValueError(f"{self.id}: kind = 'maps' and the table maps go together")
        if self.kind == "maps":
            return self
        if not (self.rows and self.columns):
            raise ValueError(f"{self.id} needs rows and columns")
        for lines, noun in ((self.rows, "rows"), (self.columns, "columns")):
            names = [line.name for line in lines]
            if twice := [name for index, name in enumerate(names) if name in names[:index]]:
                raise ValueError(f"{self.id} has two {noun} named {twice[0]!r}")
        if self.kind == "table" or self.printed:
            self._check_grid("printed", self.printed)
        if self.spread:
            self._check_grid("spread", self.spread)
        return self

    def _check_grid(self, name: str, grid: tuple[tuple[object, ...], ...]) -> None:
        if len(grid) != len(self.rows):
            raise ValueError(f"{self.id}: {name} has {len(grid)} rows for {len(self.rows)}")
        for row, numbers in zip(self.rows, grid, strict=True):
            if len(numbers) != len(self.columns):
                raise ValueError(
                    f"{self.id}: {name} of row {row.name!r} has {len(numbers)} numbers for "
                    f"{len(self.columns)} columns"
                )


@dataclass(frozen=True)
class CellSpec:
    """One cell: where it stands, what it is made of, and what the paper printed."""

    item: str
    row: str
    column: str
    part: Part
    printed: float | None
    spread: float | None

    @property
    def name(self) -> str:
        """How claims name it."""
        return f"{self.row}{CELL}{self.column}"


class PaperRecipe(Closed):
    """All that a recipe file says of a paper.

    `stand_ins` says what stands for what, and why; `missing` lists tables that are not results.
    """

    paper: Name
    title: Text
    citation: Text
    stand_ins: dict[str, str] = Field(default_factory=dict)
    models: dict[str, ModelSpec] = Field(default_factory=dict)
    items: tuple[Item, ...] = Field(min_length=1)

    @property
    def by_id(self) -> dict[str, Item]:
        """The items by their ids."""
        return {item.id: item for item in self.items}

    @property
    def digest(self) -> str:
        """The sha256 of what the recipe says."""
        return digest_of(self.model_dump(mode="json"))


def cells_of(item: Item) -> dict[str, CellSpec]:
    """Return the cells of a table or figure by name, row by row, without those the paper lacks."""
    cells: dict[str, CellSpec] = {}
    for number, row in enumerate(item.rows):
        for place, column in enumerate(item.columns):
            printed = item.printed[number][place] if item.printed else None
            if printed == NONE:
                continue
            spread = item.spread[number][place] if item.spread else None
            cell = CellSpec(
                item.id,
                row.name,
                column.name,
                _merged(item.cells, column, row),
                None if printed in (None, OWN) else float(printed),
                None if spread in (None, NONE, OWN) else float(spread),
            )
            cells[cell.name] = cell
    return cells


def _merged(*parts: Part) -> Part:
    """Return what the parts say together; a later one has the last word."""
    said: dict[str, Any] = {}
    for part in parts:
        values = part.model_dump(exclude_none=True)
        said |= {key: value for key, value in values.items() if key != "name"}
    if "model" in said:
        said["model"] = said["model"].replace("{task}", said.get("task", "{task}"))
    return Part.model_validate(said)
