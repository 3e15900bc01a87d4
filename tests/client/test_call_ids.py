"""Generated ids of calls."""

import re
import time

from toolagent.client.call_ids import new_call_id
from toolagent.contracts.identifiers import CALL_ID_PATTERN


def test_new_ids_are_ids_of_calls_differ_and_sort_by_time() -> None:
    first = {new_call_id() for _ in range(1_000)}
    time.sleep(0.002)  # the next millisecond
    later = new_call_id()
    assert len(first) == 1_000
    assert all(re.fullmatch(CALL_ID_PATTERN, one) and len(one) == len("call-") + 32 and one < later for one in first)
