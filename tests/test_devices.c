/*
 * Every operation gives the same on a CUDA device as on the CPU, forwards and backwards, on every
 * example that it lists. The device is what SOFTBACK_CUDA names, or else the emulated one; without
 * either the claims are skipped.
 */
#include "tests/device.h"
#include "tests/examples.h"
#include <float.h>

/* The same values on another device. */
static struct inputs inputs_on(const sb_device *device, const struct inputs *from)
{
    struct inputs in = {.n = from->n};
    for (int i = 0; i < in.n; i++) {
        in.x[i] = sb_tensor_to(from->x[i], device);
        cr_assert(in.x[i] != NULL, "%s", sb_error());
    }
    return in;
}

static struct results results_on(const sb_device *device, const struct example *e,
                                 const char *shapes, const struct inputs *from)
{
    struct inputs in = inputs_on(device, from);
    sb_use_device(device);
    struct results r = example_must_run(e, shapes, &in);
    sb_use_device(NULL);
    inputs_free(&in);
    return r;
}

static void f64_agrees(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F64, 1);
    struct results cpu = example_must_run(e, shapes, &in);
    struct results cuda = results_on(device_cuda(), e, shapes, &in);
    cr_expect(results_relative(&cuda, &cpu) <= 1e-12, "%s %s in f64: cuda is off by %g", e->name,
              shapes, results_relative(&cuda, &cpu));
    results_free(&cpu);
    results_free(&cuda);
    inputs_free(&in);
}

CLAIM(devices, cuda_agrees_with_the_cpu_in_f64)
{
    device_needed();
    for_each_example(f64_agrees);
}

/* Against the truth in f64, CUDA errs at most twice as much as the CPU does, or 8 ulp. */
static void f32_agrees(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1), wide = inputs_widened(&in);
    struct results truth = example_must_run(e, shapes, &wide);
    struct results cpu = example_must_run(e, shapes, &in);
    struct results cuda = results_on(device_cuda(), e, shapes, &in);
    double limit = fmax(2 * results_relative(&cpu, &truth), 8 * FLT_EPSILON);
    cr_expect(results_relative(&cuda, &truth) <= limit, "%s %s in f32: cuda is off by %g ulp",
              e->name, shapes, results_relative(&cuda, &truth) / FLT_EPSILON);
    results_free(&truth);
    results_free(&cpu);
    results_free(&cuda);
    inputs_free(&in);
    inputs_free(&wide);
}

CLAIM(devices, cuda_agrees_with_the_cpu_in_f32)
{
    device_needed();
    for_each_example(f32_agrees);
}

static void repeats(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    struct results first = results_on(device_cuda(), e, shapes, &in);
    struct results again = results_on(device_cuda(), e, shapes, &in);
    cr_expect(results_same_bits(&first, &again), "%s %s: a second run gives other bits", e->name,
              shapes);
    results_free(&first);
    results_free(&again);
    inputs_free(&in);
}

CLAIM(devices, cuda_repeats_its_bits)
{
    device_needed();
    for_each_example(repeats);
}

CLAIM(devices, every_operation_has_a_twin)
{
    device_needed();
    for (int i = 0; operation_at(i); i++)
        for (sb_dtype dtype = SB_F32; operation_at(i)->rows && dtype <= SB_F64; dtype++)
            cr_expect(device_cuda()->row(operation_at(i)->name, dtype) != NULL,
                      "%s has no kernels for %s on cuda", operation_at(i)->name,
                      sb_dtype_name(dtype));
}

CLAIM(devices, tensors_move_and_keep_their_values)
{
    device_needed();
    const double values[6] = {1, -2, 3.5, 1e-300, -0.0, 7};
    sb_tensor *x = sb_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2, 3), values));
    sb_tensor *there = sb_tensor_to(x, device_cuda()), *back = sb_tensor_to(there, sb_device_cpu());
    double read[6];
    cr_expect(sb_tensor_device(there) == device_cuda() &&
              sb_tensor_device(back) == sb_device_cpu());
    cr_expect(sb_tensor_read(there, read) && memcmp(read, values, sizeof read) == 0);
    cr_expect(memcmp(sb_tensor_data(back), values, sizeof values) == 0);
    cr_expect(!sb_tensor_data(there));
    EXPECT_ERROR("the data lies on cuda");
    cr_expect(there->requires_grad && sb_get(there, 2) == 3.5);
    cr_expect(sb_put(there, 2, 9) && sb_get(there, 2) == 9 && sb_get(x, 2) == 3.5);
    sb_tensor_release(x);
    sb_tensor_release(there);
    sb_tensor_release(back);
    cr_expect(sb_device_memory(device_cuda()).live_blocks == 0);
}

CLAIM(devices, inputs_on_two_devices_are_refused)
{
    device_needed();
    sb_tensor *a = sb_scalar(SB_F32, 1), *b = sb_tensor_to(a, device_cuda());
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_add(a, b));
    EXPECT_ERROR("cuda");
    cr_expect(!sb_tape_end(&tape));
    sb_tensor_release(a);
    sb_tensor_release(b);
}
