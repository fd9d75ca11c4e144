// A C++17 program: all headers, a layer on the tape, its gradient, and an operation's error.
#include <softback/softback.h>

#include <cmath>
#include <cstdio>
#include <cstring>

static sb_tensor *square(void *, sb_tensor *const x[])
{
    return sb_multiply(x[0], x[0]);
}

int main()
{
    const double numbers[] = {1, -2, 3, -4, 5, -6};
    sb_tensor *x = sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2, 3), numbers));
    sb_tensor *weight = sb_tensor_full(SB_F64, SB_SHAPE(4, 3), 0.5);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *loss = sb_sum(sb_softmax(sb_linear(x, weight, nullptr)), SB_ALL, false);
    const bool learned = sb_backward(loss) && std::fabs(sb_tensor_value(loss) - 2) < 1e-12;
    const bool closed = sb_tape_end(&tape);
    const bool right = sb_gradcheck(square, nullptr, &x, 1, nullptr, nullptr);
    sb_tape_begin(&tape, SB_RECORD);
    const bool refused = !sb_matmul(x, weight) && std::strstr(sb_error(), "inner sizes");
    sb_tape_end(&tape);
    sb_tensor_release(weight);
    sb_tensor_release(x);
    std::printf("softback %s from C++: %s\n", sb_version(),
                learned && closed && right && refused ? "as from C" : sb_error());
    return learned && closed && right && refused ? 0 : 1;
}
