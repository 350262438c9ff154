"""The parts of a record: frozen, closed, and without NaN."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from faithbench.records.schema import PROTOCOL, SCHEMA, Record, RowsFacts
from tests.support.records import METRIC, RECORD, SHA


def test_a_record_stays_as_made() -> None:
    record = Record.model_validate(RECORD)
    assert record.schema_version == SCHEMA == 3 and record.protocol.version == PROTOCOL == 1
    with pytest.raises(ValidationError, match="frozen"):
        record.seeds = (1,)
    with pytest.raises(ValidationError, match="frozen"):
        record.task.n = 4


def test_nan_is_refused() -> None:
    timing = {"seconds_median": None, "seconds_total": np.nan}
    with pytest.raises(ValidationError, match="finite"):
        Record.model_validate({**RECORD, "timing": timing})


PARTS = [key for key, value in RECORD.items() if isinstance(value, dict) and key != "metrics"]


@pytest.mark.parametrize("part", PARTS)
def test_no_part_takes_an_unknown_key(part: str) -> None:
    with pytest.raises(ValidationError, match=rf"{part}\.hue\s+Extra inputs are not permitted"):
        Record.model_validate({**RECORD, part: {**RECORD[part], "hue": 1}})


def test_no_metric_takes_an_unknown_key() -> None:
    with pytest.raises(ValidationError, match=r"metrics\.aopc\.hue\s+Extra inputs are not"):
        Record.model_validate({**RECORD, "metrics": {"aopc": {**METRIC, "hue": 1}}})


@pytest.mark.parametrize("name", ["", ".", "..", "/a", "b/a", "C:\\a"])
def test_rows_lie_next_to_their_record(name: str) -> None:
    with pytest.raises(ValidationError, match="bare file name"):
        RowsFacts(file=name, sha256=SHA)


def test_fields_that_older_records_lack_have_their_defaults() -> None:
    task = {key: value for key, value in RECORD["task"].items() if key != "spans"}
    protocol = {key: value for key, value in RECORD["protocol"].items() if key != "long"}
    record = Record.model_validate({**RECORD, "task": task, "protocol": protocol})
    assert record.task.spans is None and record.protocol.long == "truncate"
