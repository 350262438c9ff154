"""A bar chart with a logarithmic axis, as SVG: no plotting library is needed for one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, LEFT, RIGHT = 760, 170, 70
TOP, BAR, GAP = 46, 20, 10
BLUE, GREY, INK, RULE = "#2b6cb0", "#8a94a0", "#1f2933", "#d5dae0"


def chart(bars: Sequence[tuple[str, float]], title: str) -> str:
    """Draw a bar per name and positive value, in the given order; decades have a rule each.

    Bars of students are blue, the others grey.
    """
    # Half of the lowest value, so that its bar is one: a logarithmic axis has no zero.
    low = math.floor(math.log10(min(value for _, value in bars) / 2))
    high = max(low + 1, math.ceil(math.log10(max(value for _, value in bars))))
    height = TOP + len(bars) * (BAR + GAP) + 34
    bottom = height - 30

    def place(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="13" fill="{INK}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        x = place(10.0**power)
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{RULE}"/>'
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10.0**power:,g}</text>'
        )
    for number, (name, value) in enumerate(bars):
        y = TOP + number * (BAR + GAP)
        colour = BLUE if name.startswith("student") else GREY
        end, middle = place(value), y + BAR / 2 + 4.5
        parts.append(
            f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" fill="{colour}"/>'
            f'<text x="{end + 6:.1f}" y="{middle}">{_number(value)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
