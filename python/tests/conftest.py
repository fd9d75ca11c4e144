import gc

import pytest
import softback as sb


@pytest.fixture(autouse=True)
def nothing_live():
    """Every test ends with no more live memory than it began with."""
    gc.collect()
    before = sb.device_memory("cpu").live_bytes
    yield
    gc.collect()
    assert sb.device_memory("cpu").live_bytes <= before
