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
    """Return the script, from the cache if it was made before.

    Making it takes two seconds of CPU. The cache is keyed by the version of vl-convert-python and
    by a digest of the lines that are added here.
    """
    try:
        import vl_convert  # noqa: F401  # only to see whether it is installed
    except ImportError as error:
        raise FaithbenchError(
            "the page's charts need vl-convert-python, which is not installed; "
            "run: pip install 'faithbench[page]'"
        ) from error
    home = cache_folder()
    added = hashlib.sha256((_NOTICE + _READY).encode()).hexdigest()[:8]
    cached = home / f"charts-{version('vl-convert-python')}-{added}.js"
    try:
        return cached.read_text(encoding="utf-8")
    except (OSError, ValueError):
        script = make_library()
    try:
        home.mkdir(parents=True, exist_ok=True)
        replace_file(cached, script.encode())
    except OSError:
        pass  # A home that cannot be written to costs two seconds, not the page.
    return script


def make_library() -> str:
    """Return the script with its licences' notice, made anew."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_READY)
    return _NOTICE + bundle
