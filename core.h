/*
 * The core of softback: tensors, the tape, operations and the gradient check. softback.h has this
 * and layers, models, training and decoding besides.
 */
#ifndef SOFTBACK_CORE_H
#define SOFTBACK_CORE_H

#include "autograd/derivative.h"
#include "autograd/gradcheck.h"
#include "autograd/operation.h"
#include "autograd/recomputation.h"
#include "autograd/tape.h"
#include "ops/context.h"
#include "ops/kv_cache.h"
#include "ops/mask.h"
#include "ops/ops.h"
#include "tensor/communicator.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/dual.h"
#include "tensor/error.h"
#include "tensor/option.h"
#include "tensor/random.h"
#include "tensor/safetensors.h"
#include "tensor/tensor.h"
#include "tensor/version.h"

#endif
