// operation.c in C++17: soft-capping (Gemma Team 2024) of f32 and f64 from one template, and the
// check of its gradient.
//
//     y = cap tanh(x / cap)        dx = dy (1 - (y / cap)^2)
#include <softback/softback.h>

#include <cmath>
#include <cstdio>
#include <memory>

template <typename real> real *elements(sb_tensor *t)
{
    return static_cast<real *>(sb_tensor_data(t));
}

template <typename real> void softcap_forward(real cap, sb_tensor *input, sb_tensor *output)
{
    const real *x = elements<real>(input);
    real *y = elements<real>(output);
    for (int64_t i = 0; x && y && i < sb_tensor_size(output); i++)
        y[i] = cap * std::tanh(x[i] / cap);
}

// Adds to dx.
template <typename real> bool softcap_backward(sb_node *node)
{
    const real cap = static_cast<real>(*static_cast<const double *>(sb_node_options(node)));
    const real *y = elements<real>(sb_node_result(node, 0));
    const real *dy = elements<real>(sb_node_dy(node, 0));
    sb_tensor *wanted = sb_node_dx(node, 0);
    real *dx = wanted ? elements<real>(wanted) : nullptr;
    for (int64_t i = 0; dx && i < sb_tensor_size(wanted); i++)
        dx[i] += dy[i] * (1 - (y[i] / cap) * (y[i] / cap));
    return true;
}

// x (N) of f32 or f64 -> y (N)
static sb_tensor *softcap(sb_tensor *x, double cap)
{
    static const sb_operation f32 = {"softcap", "x", softcap_backward<float>, false, false};
    static const sb_operation f64 = {"softcap", "x", softcap_backward<double>, false, false};
    const sb_dtype dtype = sb_tensor_dtype(x);
    const sb_operation *operation = dtype == SB_F64 ? &f64 : &f32;
    sb_node *node = sb_node_new(operation, 1, &x, 1, &cap, sizeof cap);
    sb_tensor *y = sb_node_output(node, dtype, SB_SHAPE(sb_tensor_size(x)));
    if (dtype == SB_F64)
        softcap_forward<double>(cap, x, y);
    else
        softcap_forward<float>(static_cast<float>(cap), x, y);
    return y;
}

struct release {
    void operator()(sb_tensor *t) const
    {
        sb_tensor_release(t);
    }
};
using tensor = std::unique_ptr<sb_tensor, release>; // owns a reference

// The derivative at x, by backward.
static double slope(sb_dtype dtype, double x)
{
    const tensor input(sb_tensor_requires_grad(sb_tensor_from_doubles(dtype, SB_SHAPE(1), &x)));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    const bool ok = sb_backward(softcap(input.get(), 2));
    return sb_tape_end(&tape) && ok ? sb_tensor_get(sb_tensor_grad(input.get()), 0) : NAN;
}

int main()
{
    const double values[] = {-3, -1, 0, 1, 3};
    const tensor x(sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(5), values)));
    sb_tensor *inputs[] = {x.get()};
    const auto function = [](void *, sb_tensor *const in[]) { return softcap(in[0], 2); };
    const bool right = sb_gradcheck(function, nullptr, inputs, 1, nullptr, nullptr);
    const double narrow = slope(SB_F32, 1), wide = slope(SB_F64, 1);
    std::printf("softcap: the slope at 1 is %.6f in f32 and %.6f in f64; the gradient is %s\n",
                narrow, wide, right ? "right" : sb_error());
    return right && std::fabs(narrow - wide) < 1e-6 ? 0 : 1;
}
