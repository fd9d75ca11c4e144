/* Products with the Hessian agree with PyTorch's double backward: see second_order.py in
   tests/golden/references. */
#include "tests/support/reference.h"
#include "tests/support/tiny.h"
#include <stdio.h>

enum { INPUTS = 3 };

struct product {
    const char *path;
    sb_tensor *(*f)(sb_tensor *const x[]);
    sb_tensor *w;
};

static sb_tensor *attention_product(sb_tensor *const x[])
{
    return sb_attention(
        x[0], x[1], x[2],
        &(sb_attention_options){.layout = SB_LAYOUT_HEADS_FIRST, .mask = sb_mask_causal_last()});
}

static sb_tensor *layer_norm_product(sb_tensor *const x[])
{
    return sb_layer_norm(x[0], x[1], x[2], 1e-5);
}

static sb_tensor *cross_entropy_product(sb_tensor *const x[])
{
    return sb_cross_entropy(
        x[0], x[1],
        &(sb_cross_entropy_options){.label_smoothing = 0.1, .reduction = SB_REDUCE_NONE});
}

/* The sum of w y^2 */
static sb_tensor *run_product(void *context, sb_tensor *const x[])
{
    const struct product *p = context;
    sb_tensor *y = p->f(x);
    sb_tensor *squares = sb_multiply(p->w, sb_multiply(y, y));
    return sb_sum(sb_reshape(squares, 1, (const int64_t[]){-1}), 0, false);
}

/* The greatest difference is at most 1e-10 of the largest number. */
static void expect_near(const sb_safetensors *file, const char *path, const char *last,
                        const sb_tensor *got, double largest)
{
    sb_tensor *expected = KEPT(sb_safetensors_tensor(file, reference_name(path, last).text));
    cr_assert(expected && sb_tensor_size(expected) == sb_tensor_size(got), "%s.%s", path, last);
    for (int64_t i = 0; i < sb_tensor_size(got); i++)
        cr_expect(fabs(sb_tensor_get(got, i) - sb_tensor_get(expected, i)) <= 1e-10 * largest,
                  "%s.%s, element %lld", path, last, (long long)i);
}

static sb_tensor *read(const sb_safetensors *file, const char *path, const char *last)
{
    sb_tensor *t = sb_safetensors_tensor(file, reference_name(path, last).text);
    if (!t || t->dtype != SB_F32)
        return t;
    double *numbers = numbers_of(t);
    sb_tensor *wide = sb_tensor_from_doubles(SB_F64, t->rank, t->dim, numbers);
    free(numbers);
    sb_tensor_release(t);
    return wide;
}

static void compare_product(const sb_safetensors *file, struct product p)
{
    sb_tensor *x[INPUTS] = {NULL}, *v[INPUTS] = {NULL}, *h[INPUTS] = {NULL};
    char last[8];
    int n = 0;
    for (; n < INPUTS; n++) {
        snprintf(last, sizeof last, "%d", n);
        if (sb_safetensors_find(file, reference_name(p.path, last).text) < 0)
            break;
        x[n] = read(file, p.path, last);
        snprintf(last, sizeof last, "v.%d", n);
        if (x[n]->dtype == SB_F64)
            v[n] = read(file, p.path, last);
    }
    p.w = read(file, p.path, "w");
    cr_assert(n > 0 && sb_hvp(run_product, &p, x, v, n, h), "%s: %s", p.path, sb_error());
    for (int i = 0; i < n; i++) {
        snprintf(last, sizeof last, "h.%d", i);
        if (h[i])
            expect_near(file, p.path, last, h[i], largest_of(h[i]));
        sb_tensor_release(x[i]);
        sb_tensor_release(v[i]);
        sb_tensor_release(h[i]);
    }
    sb_tensor_release(p.w);
}

CPU_TEST(reference_second_order, products_of_operations_are_as_in_pytorch)
{
    sb_safetensors *file = KEPT(reference_open("second_order"));
    compare_product(file, (struct product){.path = "product/attention", .f = attention_product});
    compare_product(file, (struct product){.path = "product/layer_norm", .f = layer_norm_product});
    compare_product(file,
                    (struct product){.path = "product/cross_entropy", .f = cross_entropy_product});
}

struct whole {
    const sb_safetensors *file;
    sb_seq2seq *model;
};

static sb_tensor *run_whole(void *context, sb_tensor *const x[])
{
    static const char *const names[] = {"source", "source_lengths", "target_in", "target_out"};
    const struct whole *whole = context;
    sb_batch batch = {.parts = 4};
    (void)x;
    for (int i = 0; i < 4; i++)
        batch.part[i] = (sb_batch_part){
            .name = names[i],
            .t = reference_tensor(whole->file, reference_name("model", names[i]).text, SB_F32)};
    return sb_seq2seq_loss(whole->model, &batch);
}

CPU_TEST(reference_second_order, products_of_an_encoder_decoder_are_as_in_pytorch)
{
    const sb_seq2seq_options options = {.transformer = {.width = 8,
                                                        .heads = 2,
                                                        .feed_forward = 12,
                                                        .encoder_layers = 2,
                                                        .decoder_layers = 2,
                                                        .activation = SB_ACTIVATION_GELU},
                                        .label_smoothing = 0.1};
    sb_safetensors *file = KEPT(reference_open("second_order"));
    struct tiny tiny = tiny_new(SB_F64, 1, &options);
    reference_read_weights(file, "model", tiny.weights);
    const int n = (int)sb_parameters_count(tiny.weights);
    sb_tensor **x = tiny_parameters(tiny.weights), **v = calloc((size_t)n, sizeof *v),
              **h = calloc((size_t)n, sizeof *h);
    for (int i = 0; i < n; i++)
        v[i] = read(file, "model.v", sb_parameters_name(tiny.weights, i));
    struct whole whole = {file, tiny.model};
    cr_assert(sb_hvp(run_whole, &whole, x, v, n, h), "%s", sb_error());
    double largest =
        0; /* of all: a key's bias changes all scores of a row alike, so its part is 0 */
    for (int i = 0; i < n; i++)
        largest = fmax(largest, largest_of(h[i]));
    for (int i = 0; i < n; i++)
        expect_near(file, "model.h", sb_parameters_name(tiny.weights, i), h[i], largest);
    for (int i = 0; i < n; i++) {
        sb_tensor_release(v[i]);
        sb_tensor_release(h[i]);
    }
    free(x);
    free(v);
    free(h);
}
