#define REAL float
#define REAL_IS_FLOAT 1
#define ROW test
#include "ops/cpu/mathematics.h"
#include "ops/kernel.h"
#include "tests/support/test.h"

typedef double function(double x);
typedef long double reference(long double x);

static uint64_t state;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double random_between(double from, double to)
{
    return from + (to - from) * ((double)(random_bits() >> 11) * 0x1p-53);
}

/* The error of y in units in the last place of a number of `digits` bits. */
static double error(long double y, long double exact, int digits, int least_exponent)
{
    if (isnan(y) || isnan(exact))
        return isnan(y) && isnan(exact) ? 0 : INFINITY;
    if (y == exact)
        return 0;
    if (isinf(y) || isinf(exact)) { /* overflow near the largest number is no error */
        long double largest = ldexpl(1, 3 - least_exponent);
        return fabsl(isinf(y) ? exact : y) > 0.9999999L * largest && (y > 0) == (exact > 0)
                   ? 1
                   : INFINITY;
    }
    int exponent;
    frexpl(exact, &exponent);
    exponent = exponent < least_exponent ? least_exponent : exponent;
    return (double)(fabsl(y - exact) / ldexpl(1, exponent - digits));
}

static double error_double(double y, long double exact)
{
    return error(y, exact, 53, -1021);
}

static long double sigmoid_exactly(long double x)
{
    return 1 / (1 + expl(-x));
}

/* Random numbers of a range, or, if from == to, of all bit patterns. */
static void expect_error_below(double limit, const char *name, function *f, reference *exact,
                               double from, double to)
{
    double worst = 0, at = 0;
    state = 88172645463325252;
    for (int i = 0; i < 30000; i++) {
        double x = from < to ? random_between(from, to) : math_from_bits(random_bits());
        double e = error_double(f(x), exact(x));
        if (!(e <= worst)) {
            worst = e;
            at = x;
        }
    }
    cr_expect(worst <= limit, "%s(%a) = %a is off by %g units in the last place, more than %g",
              name, at, f(at), worst, limit);
}

static const struct {
    const char *name;
    function *f;
    reference *exact;
    double limit, range[5][2];
} doubles[] = {
    {"exp", math_exp, expl, 1.1, {{0, 0}, {-1, 1}, {-708, 709}, {-746, -700}, {700, 711}}},
    {"expm1", math_expm1, expm1l, 1.6, {{0, 0}, {-1, 1}, {-45, 45}, {-1e-9, 1e-9}, {700, 711}}},
    {"log", math_log, logl, 1, {{0, 0}, {0.5, 2}, {0.99, 1.01}, {0, 1e-307}, {0, 1e6}}},
    {"log1p", math_log1p, log1pl, 1, {{0, 0}, {-1, 1}, {-0.01, 0.01}, {-1, -0.999}, {0, 1e17}}},
    {"sigmoid",
     math_sigmoid,
     sigmoid_exactly,
     2.6,
     {{0, 0}, {-5, 5}, {-746, -700}, {-40, 40}, {-1, 1}}},
    {"tanh", math_tanh, tanhl, 2.6, {{0, 0}, {-1, 1}, {-0.1, 0.1}, {-20, 20}, {-1e-7, 1e-7}}},
    {"erf", math_erf, erfl, 1.7, {{0, 0}, {-1, 1}, {0.9, 1.1}, {-7, 7}, {-1e-7, 1e-7}}},
    {"sin", math_sin, sinl, 0.9, {{-1e-7, 1e-7}, {-1, 1}, {-7, 7}, {-1e6, 1e6}, {-1e7, 1e7}}},
    {"cos", math_cos, cosl, 0.9, {{-1e-7, 1e-7}, {-1, 1}, {-7, 7}, {-1e6, 1e6}, {-1e7, 1e7}}},
};

CPU_TEST(mathematics, doubles_are_accurate_to_the_last_places)
{
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        for (int r = 0; r < 5; r++)
            expect_error_below(doubles[i].limit, doubles[i].name, doubles[i].f, doubles[i].exact,
                               doubles[i].range[r][0], doubles[i].range[r][1]);
}

/* Where the subtraction of n pi/2 cancels most. */
CPU_TEST(mathematics, angles_near_multiples_of_half_pi_keep_their_digits)
{
    double worst = 0;
    for (int n = 1; n < 600000; n += 7) {
        double x = n * 1.5707963267948966;
        worst = fmax(worst, error_double(math_sin(x), sinl(x)));
        worst = fmax(worst, error_double(math_cos(x), cosl(x)));
    }
    cr_expect(worst <= 0.9, "%g", worst);
}

/* Of all sizes; the last one is the double nearest to a multiple of pi/2 (Muller 2006). */
CPU_TEST(mathematics, huge_angles_are_as_accurate_as_small_ones)
{
    double worst = 0;
    state = 1;
    for (int i = 0; i < 200000; i++) {
        double x = random_between(-1, 1) * ldexp(1, 20 + i % 1004);
        x = i == 0 ? 6381956970095103 * 0x1p797 : x;
        worst = fmax(worst, error_double(math_sin(x), sinl(x)));
        worst = fmax(worst, error_double(math_cos(x), cosl(x)));
    }
    cr_expect(worst <= 0.9, "%g", worst);
    cr_expect(fabs(math_cos(6381956970095103 * 0x1p797)) < 1e-18);
}

CPU_TEST(mathematics, powers_are_accurate_to_the_last_place)
{
    double worst = 0, x_worst = 0, y_worst = 0;
    state = 1;
    for (int i = 0; i < 200000; i++) {
        double x = i % 2 ? random_between(0.5, 2) : exp(random_between(-740, 709));
        double y = random_between(-1, 1) * 745 / log(x);
        double e = error_double(math_pow(x, y), powl(x, y));
        if (!(e <= worst)) {
            worst = e;
            x_worst = x;
            y_worst = y;
        }
    }
    cr_expect(worst <= 1.2, "pow(%a, %a) is off by %g", x_worst, y_worst, worst);
}

CPU_TEST(mathematics, powers_that_can_be_represented_are_exact)
{
    for (int n = -1074; n < 1024; n++)
        cr_expect(math_pow(2, n) == ldexp(1, n), "2^%d is %a", n, math_pow(2, n));
    double ten = 1;
    for (int n = 0; n <= 22; n++, ten *= 10)
        cr_expect(math_pow(10, n) == ten, "10^%d is %.17g", n, math_pow(10, n));
    for (int x = -100; x <= 100; x++)
        cr_expect(math_pow(x, 3) == x * x * x, "%d^3 is %.17g", x, math_pow(x, 3));
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* The special cases that C and IEEE 754 prescribe. */
CPU_TEST(mathematics, special_values_follow_the_standard)
{
    const double I = INFINITY, tiny = 0x1p-1074;
    const struct {
        function *f;
        double x, y;
    } cases[] = {
        {math_exp, 0, 1},       {math_exp, -0.0, 1},       {math_exp, I, I},
        {math_exp, -I, 0},      {math_exp, 710, I},        {math_exp, -746, 0},
        {math_exp, tiny, 1},    {math_exp, 1e300, I},      {math_exp, -745.1, tiny},
        {math_expm1, 0, 0},     {math_expm1, -0.0, -0.0},  {math_expm1, I, I},
        {math_expm1, -I, -1},   {math_expm1, tiny, tiny},  {math_expm1, -1e300, -1},
        {math_log, 0, -I},      {math_log, -0.0, -I},      {math_log, 1, 0},
        {math_log, I, I},       {math_log, -1, NAN},       {math_log, -I, NAN},
        {math_log1p, 0, 0},     {math_log1p, -0.0, -0.0},  {math_log1p, -1, -I},
        {math_log1p, -2, NAN},  {math_log1p, I, I},        {math_log1p, -tiny, -tiny},
        {math_tanh, 0, 0},      {math_tanh, -0.0, -0.0},   {math_tanh, I, 1},
        {math_tanh, -I, -1},    {math_tanh, -tiny, -tiny}, {math_sigmoid, 0, 0.5},
        {math_sigmoid, I, 1},   {math_sigmoid, -I, 0},     {math_sigmoid, -800, 0},
        {math_erf, 0, 0},       {math_erf, -0.0, -0.0},    {math_erf, I, 1},
        {math_erf, -I, -1},     {math_erf, 6.5, 1},        {math_sin, 0, 0},
        {math_sin, -0.0, -0.0}, {math_sin, I, NAN},        {math_sin, tiny, tiny},
        {math_cos, 0, 1},       {math_cos, -I, NAN},       {math_cos, tiny, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(same(cases[i].f(cases[i].x), cases[i].y), "case %d: f(%g) = %g, not %g", (int)i,
                  cases[i].x, cases[i].f(cases[i].x), cases[i].y);
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        cr_expect(isnan(doubles[i].f(NAN)), "%s(NaN)", doubles[i].name);
}

CPU_TEST(mathematics, special_powers_follow_the_standard)
{
    const double I = INFINITY;
    const double cases[][3] = {
        {NAN, 0, 1},         {1, NAN, 1},
        {NAN, 1, NAN},       {2, NAN, NAN},
        {0, 2, 0},           {-0.0, 3, -0.0},
        {-0.0, 2, 0},        {0, -1, I},
        {-0.0, -1, -I},      {-0.0, -2, I},
        {-1, I, 1},          {-1, -I, 1},
        {0.5, I, 0},         {0.5, -I, I},
        {2, I, I},           {2, -I, 0},
        {-I, 3, -I},         {-I, 2, I},
        {-I, -3, -0.0},      {I, 0.5, I},
        {I, -1, 0},          {-8, 0.5, NAN},
        {-1, 0.5, NAN},      {-2, 3, -8},
        {-2, -2, 0.25},      {2, 1e300, I},
        {0.5, 1e300, 0},     {-2, 1025, -I},
        {1.5, 0x1p-1074, 1}, {0, I, 0},
        {0, -I, I},          {-1, 0x1p60, 1},
        {-1, 3, -1},         {0x1p-1074, 0.5, 0x1p-537},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(same(math_pow(cases[i][0], cases[i][1]), cases[i][2]), "pow(%g, %g) = %g, not %g",
                  cases[i][0], cases[i][1], math_pow(cases[i][0], cases[i][1]), cases[i][2]);
}

enum { FLOATS = 256, FUNCTIONS = 7 };

/* All float functions of x, in loops that the compiler turns into vector code. */
static inline __attribute__((always_inline)) void float_functions(const float *x,
                                                                  float y[FUNCTIONS][FLOATS])
{
    for (int i = 0; i < FLOATS; i++)
        y[0][i] = real_exp(x[i]);
    for (int i = 0; i < FLOATS; i++)
        y[1][i] = real_expm1(x[i]);
    for (int i = 0; i < FLOATS; i++)
        y[2][i] = real_log(x[i]);
    for (int i = 0; i < FLOATS; i++)
        y[3][i] = real_log1p(x[i]);
    for (int i = 0; i < FLOATS; i++)
        y[4][i] = real_sigmoid(x[i]);
    for (int i = 0; i < FLOATS; i++)
        y[5][i] = real_tanh(x[i]);
    for (int i = 0; i < FLOATS; i++)
        y[6][i] = real_erf(x[i]);
}

static void functions_plain(const float *x, float y[FUNCTIONS][FLOATS])
{
    float_functions(x, y);
}

#ifdef SOFTBACK_X86_SETS
__attribute__((target("avx2,fma"))) static void functions_fused(const float *x,
                                                                float y[FUNCTIONS][FLOATS])
{
    float_functions(x, y);
}
#endif

/* Every 4099th float, or with the long tests every one, against the double functions. */
static void expect_floats(void (*functions)(const float *x, float y[FUNCTIONS][FLOATS]))
{
    static const struct {
        const char *name;
        function *exact;
        double limit, flushed; /* results below this may be 0 */
    } f[FUNCTIONS] = {
        {"exp", math_exp, 1.25, 1.83e-38},
        {"expm1", math_expm1, 1.5, 0},
        {"log", math_log, 1, 0},
        {"log1p", math_log1p, 1, 0},
        {"sigmoid", math_sigmoid, 2.6, 1.83e-38},
        {"tanh", math_tanh, 2.8, 0},
        {"erf", math_erf, 1.8, 0},
    };
    double worst[FUNCTIONS] = {0};
    float at[FUNCTIONS] = {0}, x[FLOATS], y[FUNCTIONS][FLOATS];
    uint32_t step = test_long() ? 1 : 4099;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
        for (int i = 0; i < FLOATS; i++, bits += step)
            x[i] = float_from_bits((uint32_t)bits);
        functions(x, y);
        for (int k = 0; k < FUNCTIONS; k++)
            for (int i = 0; i < FLOATS; i++) {
                double exact = f[k].exact(x[i]);
                double e = fabs(exact) < f[k].flushed && y[k][i] == 0
                               ? 0
                               : error(y[k][i], exact, 24, -125);
                if (!(e <= worst[k])) {
                    worst[k] = e;
                    at[k] = x[i];
                }
            }
    }
    for (int k = 0; k < FUNCTIONS; k++)
        cr_expect(worst[k] <= f[k].limit, "%s(%a) is off by %g units in the last place, not %g",
                  f[k].name, at[k], worst[k], f[k].limit);
}

CPU_TEST(mathematics, floats_are_accurate_to_the_last_places)
{
    expect_floats(functions_plain);
}

CPU_TEST(mathematics, floats_are_accurate_with_fused_multiplications)
{
#ifdef SOFTBACK_X86_SETS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        expect_floats(functions_fused);
#endif
}

CPU_TEST(mathematics, special_floats_follow_the_standard)
{
    const float I = INFINITY, tiny = 0x1p-149f;
    const struct {
        int function;
        float x, y;
    } cases[] = {
        {0, 0, 1},       {0, -I, 0},        {0, I, I},         {0, 89, I},        {0, -87, 0},
        {0, NAN, NAN},   {0, -1e30f, 0},    {1, -0.0f, -0.0f}, {1, -I, -1},       {1, I, I},
        {1, tiny, tiny}, {1, NAN, NAN},     {2, 0, -I},        {2, -0.0f, -I},    {2, -1, NAN},
        {2, I, I},       {2, 1, 0},         {2, NAN, NAN},     {3, -1, -I},       {3, -0.0f, -0.0f},
        {3, I, I},       {3, -2, NAN},      {3, NAN, NAN},     {4, 0, 0.5f},      {4, -I, 0},
        {4, I, 1},       {4, NAN, NAN},     {5, -0.0f, -0.0f}, {5, 0, 0},         {5, I, 1},
        {5, -I, -1},     {5, -tiny, -tiny}, {5, NAN, NAN},     {6, -0.0f, -0.0f}, {6, 0, 0},
        {6, I, 1},       {6, -I, -1},       {6, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x[FLOATS], y[FUNCTIONS][FLOATS];
        for (int j = 0; j < FLOATS; j++)
            x[j] = cases[i].x;
        functions_plain(x, y);
        float first = y[cases[i].function][0], last = y[cases[i].function][FLOATS - 1];
        cr_expect(same(first, cases[i].y) && same(last, cases[i].y),
                  "function %d of %g is %g, not %g", cases[i].function, cases[i].x, first,
                  cases[i].y);
    }
}
