"""Claims of a paper as expressions over cells, closed and without code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, model_validator

from faithbench.core.schema import Closed

Test = Literal["signed-rank", "rank-sum", "t", "mcnemar", "tau", "interval"]
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[StrictInt, Field(ge=1)]
Operand = str | StrictFloat | StrictInt


class Correlation(Closed):
    """Cells whose numbers rise or fall with others: with numbers, or with those of other cells."""

    of: tuple[Text, ...] = Field(min_length=3)
    by: tuple[Operand, ...] = Field(min_length=3)
    sign: Literal["positive", "negative"]


class Expression(Closed):
    """A statement about cells: less, greater, same, not_above, correlation, all_of or count_of.

    A cell is named `row | column`. `each` stands for the statement with every combination of its
    values in the place of `{name}`. `same` asks for a difference of at most `within`, `not_above`
    that the first is not significantly above the second, nor by more than that.
    """

    less: tuple[Operand, Operand] | None = None
    greater: tuple[Operand, Operand] | None = None
    same: tuple[Operand, Operand] | None = None
    not_above: tuple[Operand, Operand] | None = None
    within: float | None = None
    correlation: Correlation | None = None
    all_of: tuple[Expression, ...] | None = None
    count_of: tuple[Expression, ...] | None = None
    at_least: Positive | None = None
    each: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_one_statement(self) -> Self:
        said = [name for name in STATEMENTS if getattr(self, name) is not None]
        if len(said) != 1:
            raise ValueError(
                f"needs exactly one of {', '.join(STATEMENTS)}, found {said or 'none'}"
            )
        if (self.same is None and self.not_above is None) != (self.within is None):
            raise ValueError("same and not_above go together with within")
        if (self.count_of is None) != (self.at_least is None):
            raise ValueError("count_of and at_least go together")
        if self.all_of == () or self.count_of == () or not all(self.each.values()):
            raise ValueError("all_of, count_of and the lists of each need an entry")
        return self


STATEMENTS = ("less", "greater", "same", "not_above", "correlation", "all_of", "count_of")


class ClaimSpec(Expression):
    """What the paper says (`says`, in our words), where, and the test that decides it.

    An `own` one is a question of ours beside the paper's claims, and is counted apart.
    """

    says: Text
    where: Text
    test: Test
    note: str = ""
    own: bool = False


def expand(expression: Expression, bound: Mapping[str, str] | None = None) -> Expression:
    """Return an expression with the values of `each` in their places, and no `each` any more.

    A statement about cells that has one becomes an all_of; inside all_of and count_of, its
    expansions stand side by side.
    """
    made = _expansions(expression, bound or {})
    return made[0] if len(made) == 1 else Expression(all_of=tuple(made))


def _expansions(expression: Expression, bound: Mapping[str, str]) -> list[Expression]:
    """Return an expression once for every combination of the values of its `each`."""
    combinations = itertools.product(*expression.each.values())
    return [
        _filled(expression, {**bound, **dict(zip(expression.each, values, strict=True))})
        for values in combinations
    ]


def _filled(expression: Expression, names: Mapping[str, str]) -> Expression:
    for combined in ("all_of", "count_of"):
        parts = getattr(expression, combined)
        if parts is not None:
            flat = [whole for part in parts for whole in _expansions(part, names)]
            return Expression.model_validate(
                {combined: tuple(flat), "at_least": expression.at_least}
            )
    said = expression.model_dump(
        exclude_none=True, exclude={"each", "says", "where", "test", "note", "own"}
    )
    return Expression.model_validate(_replaced(said, names))


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {key: _replaced(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_replaced(each, names) for each in value)
    return value


def atoms_of(expression: Expression) -> Iterator[Expression]:
    """Yield the statements about cells in an expanded expression, in their order."""
    parts = expression.all_of if expression.all_of is not None else expression.count_of
    if parts is None:
        yield expression
        return
    for part in parts:
        yield from atoms_of(part)


def operands_of(atom: Expression) -> tuple[Operand, ...]:
    """Return the cells and numbers that a statement is about."""
    if atom.correlation is not None:
        return (*atom.correlation.of, *atom.correlation.by)
    return atom.less or atom.greater or atom.same or atom.not_above or ()
