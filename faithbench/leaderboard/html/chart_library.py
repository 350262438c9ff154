"""The script that draws the page's charts: Vega-Embed, as vl-convert-python brings it."""

from __future__ import annotations

import hashlib
from importlib.metadata import version

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import cache_folder, replace_file

_NOTICE = """/*! Vega, Vega-Lite and Vega-Embed: Copyright the University of Washington Interactive
Data Lab and contributors, BSD 3-Clause. With parts of D3: Copyright Mike Bostock, ISC. */
"""
# Vega-Embed, not Vega alone: it brings the interpreter that does without eval.
_READY = "window.vegaEmbed = vegaEmbed; window.dispatchEvent(new Event('charts-ready'));"


def chart_library() -> str:
    """Return the script, from where it was kept if it was made before.

    Making it takes two seconds of CPU. What is kept belongs to one version of vl-convert-python
    and of our own lines.
    """
    try:
        import vl_convert  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise FaithbenchError(
            "the page's charts need vl-convert-python, which is not installed; "
            "run: pip install 'faithbench[page]'"
        ) from error
    home = cache_folder()
    own = hashlib.sha256((_NOTICE + _READY).encode()).hexdigest()[:8]
    kept = home / f"charts-{version('vl-convert-python')}-{own}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, ValueError):
        made = make_library()
    try:
        home.mkdir(parents=True, exist_ok=True)
        replace_file(kept, made.encode())
    except OSError:
        pass  # A home that cannot be written to costs two seconds, not the page.
    return made


def make_library() -> str:
    """Return the script with its licences' notice, made anew."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_READY)
    return _NOTICE + bundle
