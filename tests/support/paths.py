"""Where things are that several tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "reference" / "golden"
REAL = ROOT.parent / "shared" / "data"
