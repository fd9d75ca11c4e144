import gc
import os

import pytest
import softback as sb

LONG = os.environ.get("SOFTBACK_TEST_LONG", "") not in ("", "0")

gc.freeze()  # what is imported: collections visit only what tests make


@pytest.fixture(autouse=True)
def nothing_live():
    """Every test ends with no more live memory than it began with."""
    gc.collect()
    before = sb.device_memory("cpu").live_bytes
    yield
    gc.collect()
    assert sb.device_memory("cpu").live_bytes <= before
