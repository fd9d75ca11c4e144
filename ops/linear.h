/*
 * The kernels of linear and linear_activation; linear_cross_entropy runs them too.
 *
 * In BLAS, the order of additions depends on the size of the whole product, so the bits of a row
 * depend on the number of rows. Where a sequence must have the same result in every batch
 * (context_by_row of ops/runs.h), linear and matmul therefore use `by_row`: the built-in product,
 * where a row of the result depends only on the same row of x and on the weight.
 */
#ifndef SOFTBACK_OPS_LINEAR_H
#define SOFTBACK_OPS_LINEAR_H

#include "ops/kernel.h"
#include "ops/ops.h"
#include "ops/rows.h"

/*
 * Several linears of one x and of one shape, without activation, such as queries, keys and values:
 * their weights, biases and results lie at equal distances in memory, here in elements. Each is a
 * matrix of its own, so a file, a gradient and a lesson see nothing of it.
 */
enum { LINEAR_GROUP = 3 }; /* the most there are */
struct linear_group {
    int64_t count; /* 0: a single linear, which has no distances */
    int64_t weight, bias, y;
};

struct linear_shape {
    int64_t rows, in, out; /* x (rows, in), weight (out, in), y (rows, out) */
    sb_activation activation;
    bool by_row;
    bool tf32;     /* a GPU rounds f32 operands of products to TF32 */
    bool packed;   /* the weight is packed; by_row only */
    bool wide;     /* z, y and all gradients except dz have the dtype of sums (ops/kernel.h) */
    int64_t pitch; /* elements from row to row of y and dz; 0: out. On the CPU it is out */
    struct linear_group group; /* only if `groups` */
};

/* Whether backward computes the activation's derivative from y; otherwise it needs z = x W' + b. */
static inline bool linear_keeps_y(sb_activation activation)
{
    return activation == SB_ACTIVATION_RELU || activation == SB_ACTIVATION_TANH ||
           activation == SB_ACTIVATION_SIGMOID || activation == SB_ACTIVATION_IDENTITY;
}

struct linear_kernels {
    /* Packs a weight in the order in which products read it, and returns the number of bytes that
       this takes; packed may be NULL to ask for that number. NULL if packing has no advantage. */
    int64_t (*pack)(int64_t out, int64_t in, const void *weight, void *packed);
    /* bias and z may be NULL. */
    bool (*forward)(const struct linear_shape *s, const void *x, const void *weight,
                    const void *bias, void *z, void *y);
    /* dz = dy activation'(z), where `kept` is y if linear_keeps_y, else z; dz may be `kept` itself.
       The identity has dz = dy and reads neither. */
    bool (*backward_activation)(const struct linear_shape *s, const void *kept, const void *dy,
                                void *dz);
    /* dbias = the sum of dz's rows; partial is scratch (slabs, out), or of a group (slabs,
       LINEAR_GROUP, out). */
    bool (*backward_bias)(const struct linear_shape *s, const void *dz, void *partial, bool fresh,
                          void *dbias);
    bool (*backward_x)(const struct linear_shape *s, const void *dz, const void *weight, bool fresh,
                       void *dx);
    bool (*backward_weight)(const struct linear_shape *s, const void *dz, const void *x, bool fresh,
                            void *dweight);
    /* forward, backward_bias and backward_weight compute groups as one product. */
    bool groups;
};

extern struct kernel_rows linear_rows;

/* The shape of a linear on the open tape. */
struct linear_shape linear_shape_of(const sb_tensor *x, const sb_tensor *weight,
                                    sb_activation activation);

/* The same for the kernel of one gradient, which may be wider than x (node_writes_f32). */
struct linear_shape linear_shape_to(const struct linear_shape *s, const sb_tensor *x,
                                    const sb_tensor *dx);

/* Checks x, weight and bias (NULL: none); `op` opens the messages. */
bool linear_check(const char *op, const sb_tensor *x, const sb_tensor *weight,
                  const sb_tensor *bias);

/* Whether the device of x computes a group of linears as one product. */
bool linear_groups(const sb_tensor *x);

/*
 * y[i] = x weight[i]' + bias[i] for n weights of one shape, 2 to LINEAR_GROUP of them, as one node
 * (ops/linear_group.c). bias is NULL where there are none. The results are split into heads: x
 * (..., in) -> y[i] (..., heads, out / heads).
 */
bool linear_group(sb_tensor *x, int n, sb_tensor *const weight[], sb_tensor *const bias[],
                  int64_t heads, sb_tensor *y[]);

#endif
