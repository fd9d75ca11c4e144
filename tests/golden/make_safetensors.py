"""Makes the safetensors files of the tests with the reference library (pip install safetensors
numpy): python3 tests/golden/make_safetensors.py

python.safetensors    every element type and kind of shape, as the reference library writes them
writer.safetensors    the bytes that softback must write for the same tensors
bf16.safetensors      types that NumPy does not have, and more metadata

test_safetensors.c repeats the values.
"""
import json
import pathlib
import struct

import numpy as np
from safetensors.numpy import save

folder = pathlib.Path(__file__).parent


def ramp(dtype, *shape):
    """-3, -2, -1, 0, ... in row-major order."""
    return (np.arange(np.prod(shape, dtype=int)) - 3).reshape(shape).astype(dtype)


own = {
    "f64.matrix": ramp(np.float64, 2, 3) / 8,
    "f64.scalar": np.array(np.pi),
    "f32.vector": np.array([0.0, -0.0, 1e-45, 3.4028235e38, np.inf, -np.inf, np.nan], np.float32),
    "f32.empty": np.zeros((2, 0, 3), np.float32),
    "f32.rank6": ramp(np.float32, 1, 2, 1, 2, 1, 2),
    "i32.vector": np.array([-(2**31), -1, 0, 2**31 - 1], np.int32),
    "bool.matrix": np.array([[True, False, True]]),
    "é €\U0001F600 \"quoted\" \\ \t\x01": ramp(np.float32, 1),
}
foreign = {
    "f16": np.array([0, -0.0, 6e-8, 6.1e-5, 1.5, -65504, np.inf, np.nan], np.float16),
    "i64": np.array([-(2**31), 2**31 - 1], np.int64),
    "i64.large": np.array([0, 1, -3_000_000_000], np.int64),
    "u64": np.array([0, 2**31 - 1], np.uint64),
    "u64.large": np.array([2**64 - 1], np.uint64),
    "u32": np.array([0, 2**31 - 1], np.uint32),
    "u32.large": np.array([2**31], np.uint32),
    "i16": np.array([-32768, 32767], np.int16),
    "u16": np.array([0, 65535], np.uint16),
    "i8": np.array([-128, 127], np.int8),
    "u8": np.array([0, 255], np.uint8),
}
metadata = {"größe \U0001F600": "line\nline \"two\" \\ \x1f"}
(folder / "writer.safetensors").write_bytes(save(own, metadata))
(folder / "python.safetensors").write_bytes(save(own | foreign, metadata))

# NumPy has no bfloat16; its bits are the upper half of float32's.
bf16 = (np.array([1.5, -2, np.inf], np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
header = {"__metadata__": {"empty": "", "": "an empty key"},
          "bf16": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]},
          "f8": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [6, 8]}}
text = json.dumps(header).encode()
(folder / "bf16.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bf16 + b"\0\0")
