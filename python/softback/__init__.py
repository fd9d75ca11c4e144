"""softback: a small autograd tensor library for transformers."""
from ._functions import *
from .library import Error
from ._declarations import VERSION as __version__
from . import arrays, indexing, operators
from .operators import *
from .functions import *
from .pretrained import (Attention, Pretrained, PretrainedClassifier, PretrainedEncoder, PretrainedLanguageModel, PretrainedSeq2Seq,
                         from_pretrained)
from .operation import Operation, backward_in_shares, gradcheck, hvp, jvp, operation
from .show import explain
from .tensors import Mask, Tape, Tensor, from_dlpack, from_numpy, full, ones, tensor, zeros
from .training import batch, evaluate, load, sample

Random, SGD, Adam, AdamW = random_new, Optimiser.sgd, Optimiser.adam, Optimiser.adamw
