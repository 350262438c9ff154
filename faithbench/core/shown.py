"""Objects that show themselves: in colour in a terminal, and as HTML in a notebook."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType


class Shown:
    """Shows what `__rich__` returns when it is printed, or is the last value typed in a shell.

    A notebook asks for `_repr_html_` first. A dataclass that inherits from this is declared with
    `repr=False`.
    """

    def __rich__(self) -> RenderableType:
        """Return what a rich console prints."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        from rich.console import Console

        # Not printed by the console itself: in a notebook it would write past the caller.
        console = Console(
            file=io.StringIO(), force_terminal=sys.stdout.isatty(), force_jupyter=False
        )
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip("\n")
