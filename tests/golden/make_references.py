#!/usr/bin/env python3
"""Writes references_*.safetensors: results of PyTorch for operations, attention, layers, models,
training and language models, which tests/ops/test_operations.c and tests/*/test_references.c compare
with. The suite does not run this script:

    python3 -m venv environment
    environment/bin/pip install torch numpy safetensors
    environment/bin/python tests/golden/make_references.py

The files in the repository were made with PyTorch 2.15 and safetensors 0.8 on an x86-64 CPU.

All inputs and weights are drawn in float32, so that both dtypes start with the same numbers.
Values and gradients are those of PyTorch in float64. For each of them, under its name followed by
"~", is the error of PyTorch's float32 result: max|float32 - float64|. See references/record.py
for the names.
"""

import pathlib

import torch

from references import (attention, language, layers, models, operations, optimisers, record,
                        second_order, small_operations, training)

torch.set_num_threads(1)
for theme in (operations, attention, layers, models, optimisers, training, second_order,
              language, small_operations):
    name = theme.__name__.split(".")[-1]
    cases = record.Record(name)
    theme.add(cases)
    cases.save(pathlib.Path(__file__).parent / f"references_{name}.safetensors")
