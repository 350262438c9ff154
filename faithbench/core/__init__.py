"""What every room may use: errors, the nouns of a run, closed schemas, files, digests, text.

- `errors`: `FaithbenchError`, the one error that a user is meant to read, and `unknown` names
- `types`: `Example`, `Encoding`, `Batch`, `Attribution`, `Outputs`, `Case`, and aliases of arrays
- `erasure`: keep-masks and erased rows; `rounding`: numbers as files hold them
- `schema`: `Closed` and `Facts`, the bases of files; `spec`: the grammar `name:key=value`
- `files`: atomic writes, strict JSON, sha256, cache and temporary folders
- `text`: text of unknown origin made safe to show
- `machine`: the processor's name
- `plugins`: code that packages and loose files bring; `parallel`: a map over processes

Names are imported from these modules; only the error is offered here.
"""

from faithbench.core.errors import FaithbenchError

__all__ = ["FaithbenchError"]
