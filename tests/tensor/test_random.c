/* Random numbers and elementary functions. */
#include "tensor/philox.h"
#include "tests/support/test.h"

/* Known answers of Philox4x32-10: Random123's kat_vectors, then further counters whose halves
   carry, in cuRAND's layout: key = seed, counter = (block, subsequence), 64 bits each. */
static const struct {
    uint64_t seed, subsequence, block;
    uint32_t word[4];
} known[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x299f31d0a4093822,
     0x0370734413198a2e,
     0x85a308d3243f6a88,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    {1234, 0, 0, {0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e}},
    {1234, 0, 1, {0x9eeede35, 0x1cbe137c, 0xfa277093, 0x147edd50}},
    {1234, 5, 0, {0xf942741c, 0xb7a11b7a, 0x8b27a0cc, 0xbd95acc8}},
    {1234, 0, 0xffffffff, {0x3d851ed3, 0x6912435b, 0xe251185a, 0x47e5cc47}},
    {1234, 0, 0x100000000, {0x70c51b59, 0x3fbee9a5, 0x3a338d15, 0x56fb64a6}},
    {1234, 0xffffffff, UINT64_MAX, {0x644d04be, 0xf6410f2c, 0x2d07c80f, 0xb3754efc}},
    {42, 1, 3, {0x1e8dc7c5, 0xae3a5abf, 0x36d8462c, 0x080b604b}},
};

CPU_TEST(random, philox_gives_the_known_answers_in_curands_layout)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct philox draw = philox(known[i].seed, known[i].subsequence, known[i].block);
        cr_expect(memcmp(draw.word, known[i].word, sizeof draw.word) == 0, "answer %zu", i);
    }
}

CPU_TEST(random, each_draw_uses_one_position)
{
    sb_random random = sb_random_new(1234, SB_STREAM_INITIAL);
    cr_expect(random.position == 0);
    cr_expect(sb_random_bits(&random) == 0x2090b348 && random.position == 1);
    sb_random_uniform(&random);
    sb_random_normal(&random);
    sb_random_below(&random, 7);
    cr_expect(random.position == 4);
    random.position = 5;
    cr_expect(sb_random_bits(&random) == 0xf942741c);
    random.position = 0;
    uint64_t bits = (uint64_t)0x2090b348 << 32 | 0xda7cf0ab;
    cr_expect(sb_random_uniform(&random) == (double)(bits >> 11) / 9007199254740992.0);
}

CPU_TEST(random, streams_do_not_overlap)
{
    for (uint64_t stream = SB_STREAM_INITIAL; stream <= SB_STREAM_USER; stream++) {
        sb_random random = sb_random_new(7, (sb_stream)stream);
        cr_expect(random.position == stream << 48 && random.seed == 7);
    }
}

CPU_TEST(random, streams_and_seeds_are_independent)
{
    enum { N = 20000 };
    const sb_random start[] = {sb_random_new(7, SB_STREAM_TRAIN),
                               sb_random_new(7, SB_STREAM_DATA),
                               sb_random_new(8, SB_STREAM_TRAIN),
                               {7, sb_random_new(7, SB_STREAM_TRAIN).position + 1}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            sb_random a = start[i], b = start[j];
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += (sb_random_uniform(&a) - 0.5) * (sb_random_uniform(&b) - 0.5);
            /* the deviation of the correlation is 1 / sqrt N = 0.007 */
            cr_expect(fabs(sum / N * 12) < 0.03, "streams %d, %d: %g", i, j, sum / N * 12);
        }
}

CPU_TEST(random, uniform_numbers_have_the_right_moments)
{
    enum { N = 100000 };
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    double sum = 0, square = 0, least = 1, most = 0;
    for (int i = 0; i < N; i++) {
        double u = sb_random_uniform(&random);
        sum += u;
        square += u * u;
        least = fmin(least, u);
        most = fmax(most, u);
    }
    /* deviations of the two means: sqrt(1/12 / N) = 0.0009, sqrt(4/45 / N) = 0.0009 */
    cr_expect(fabs(sum / N - 1 / 2.0) < 0.004 && fabs(square / N - 1 / 3.0) < 0.004);
    cr_expect(least >= 0 && least < 1e-3 && most < 1 && most > 1 - 1e-3);
}

CPU_TEST(random, normal_numbers_have_the_right_moments)
{
    enum { N = 200000 };
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    double moment[5] = {0};
    int beyond_two = 0;
    for (int i = 0; i < N; i++) {
        double z = sb_random_normal(&random), power = 1;
        for (int k = 0; k < 5; k++, power *= z)
            moment[k] += power / N;
        beyond_two += fabs(z) > 2;
    }
    /* the deviations of the first four are sqrt((1, 2, 15, 96) / N) = 0.0022, 0.0032, 0.0087,
       0.022 */
    cr_expect(fabs(moment[1]) < 0.009 && fabs(moment[2] - 1) < 0.013);
    cr_expect(fabs(moment[3]) < 0.035 && fabs(moment[4] - 3) < 0.09);
    cr_expect(fabs((double)beyond_two / N - 0.0455) < 0.002);
}

CPU_TEST(random, normal_numbers_follow_box_and_muller)
{
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    for (int i = 0; i < 1000; i++) {
        struct philox draw = philox(3, random.position, 0);
        uint64_t a = (uint64_t)draw.word[0] << 32 | draw.word[1];
        uint64_t b = (uint64_t)draw.word[2] << 32 | draw.word[3];
        double u = (double)(a >> 11) * 0x1p-53, angle = 2 * M_PI * ((double)(b >> 11) * 0x1p-53);
        double expected = sqrt(-2 * log1p(-u)) * cos(angle);
        cr_expect(fabs(sb_random_normal(&random) - expected) < 1e-14);
    }
}

/* Without rejection of the remainder of 2^32, multiples of 3 would occur half of the time. */
CPU_TEST(random, below_is_without_bias)
{
    enum { N = 30000 };
    sb_random random = sb_random_new(5, SB_STREAM_USER);
    int multiples = 0, count[7] = {0};
    for (int i = 0; i < N; i++) {
        uint32_t value = sb_random_below(&random, 3221225472u); /* 3/4 of 2^32 */
        cr_expect(value < 3221225472u);
        multiples += value % 3 == 0;
        count[sb_random_below(&random, 7)]++;
    }
    cr_expect(fabs(multiples / (double)N - 1 / 3.0) < 0.011); /* four deviations */
    double chi_square = 0;
    for (int i = 0; i < 7; i++)
        chi_square += (count[i] - N / 7.0) * (count[i] - N / 7.0) / (N / 7.0);
    cr_expect(chi_square < 22.5, "chi square %g", chi_square); /* six degrees: 0.1 % */
}

CPU_TEST(random, below_one_is_zero_and_below_zero_is_refused)
{
    sb_random random = sb_random_new(5, SB_STREAM_USER);
    for (int i = 0; i < 10; i++)
        cr_expect(sb_random_below(&random, 1) == 0);
    cr_expect(sb_random_below(&random, 0) == 0);
    EXPECT_ERROR("random_below: the limit is 0, not at least 1");
}

CPU_TEST(random, a_shuffle_is_a_permutation)
{
    sb_random random = sb_random_new(9, SB_STREAM_DATA);
    for (int64_t n = 0; n <= 100; n++) {
        int64_t order[101];
        bool seen[101] = {false};
        order[n] = -77;
        sb_random_shuffle(&random, n, order);
        for (int64_t i = 0; i < n; i++) {
            cr_assert(order[i] >= 0 && order[i] < n && !seen[order[i]]);
            seen[order[i]] = true;
        }
        cr_expect(order[n] == -77);
    }
}

CPU_TEST(random, every_order_is_equally_likely)
{
    enum { N = 24000 };
    sb_random random = sb_random_new(9, SB_STREAM_DATA);
    int count[64] = {0};
    for (int i = 0; i < N; i++) {
        int64_t order[3];
        sb_random_shuffle(&random, 3, order);
        count[order[0] * 16 + order[1] * 4 + order[2]]++;
    }
    double chi_square = 0;
    int orders = 0;
    for (int i = 0; i < 64; i++)
        if (count[i]) {
            chi_square += (count[i] - N / 6.0) * (count[i] - N / 6.0) / (N / 6.0);
            orders++;
        }
    cr_expect(orders == 6 && chi_square < 20.5, "chi square %g", chi_square); /* 5 degrees: 0.1 % */
}

/* ---- mathematics ---- */

#define REAL float
#define REAL_IS_FLOAT 1
#define ROW test
#include "ops/cpu/mathematics.h"
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
