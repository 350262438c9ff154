"""What each number means: pure functions of an example, of its words or of a whole table."""

# Each registers its metrics on import.
from faithbench.metrics import cost as cost
from faithbench.metrics import faithfulness as faithfulness
from faithbench.metrics import plausibility as plausibility
from faithbench.metrics import released as released
from faithbench.metrics import stability as stability
