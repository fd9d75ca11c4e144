#include "tensor/mathematics.h"

/*
 * Where more than 53 bits are needed, numbers are unevaluated sums of two doubles. Only halves are
 * multiplied, so products are exact, whether or not the compiler uses fused multiply-add.
 */
struct pair {
    double high, low;
};

/* a + b exactly (Knuth) */
static struct pair sum_of(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (struct pair){sum, (a - (sum - part)) + (b - part)};
}

/* The leading 26 bits; what remains has 27. */
static double upper_half(double x)
{
    return math_from_bits(math_bits(x) & 0xfffffffff8000000);
}

/*
 * x - n pi/2 for n = round(x / (pi/2)); stores n mod 4. Pi/2 is taken to 143 bits in four parts,
 * of which three are so short that n times each is exact for |n| < 2^23 (Cody and Waite).
 */
static struct pair reduced_angle(double x, int *quadrant)
{
    double n = floor(x * 0x1.45f306dc9c883p-1 + 0.5);
    struct pair a = sum_of(x - n * 0x1.921fb54p+0, -n * 0x1.10b46118p-30);
    struct pair b = sum_of(a.high, -n * 0x1.313198ap-61);
    double low = b.low + a.low - n * 0x1.701b839a25205p-92;
    *quadrant = (int)(n - 4 * floor(n / 4));
    double high = b.high + low;
    return (struct pair){high, low - (high - b.high)};
}

/* 2/pi after 32 bits of 0. */
static const uint32_t two_over_pi[] = {
    0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c,
    0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
    0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf,
    0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea,
    0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d,
};

enum { LIMBS = 6 };

/* 32 bits of the table from bit `at` on. */
static uint32_t bits_of_two_over_pi(int at)
{
    const uint64_t both = (uint64_t)two_over_pi[at / 32] << 32 | two_over_pi[at / 32 + 1];
    return (uint32_t)(both >> (32 - at % 32));
}

/*
 * x / (pi/2) mod 4 in units of 2^-190, for 2^23 <= x < infinity; limb 0 is the highest. With
 * x = m 2^e, the bits of 2/pi that m 2^e makes multiples of 4 are left out, and 192 bits follow. No
 * double is closer to a multiple of pi/2 than about 2^-61, of which 76 bits stay (Payne and Hanek
 * 1983).
 */
static void quarters_of(double x, uint32_t turn[LIMBS])
{
    const uint64_t m = (math_bits(x) & 0x000fffffffffffff) | 0x0010000000000000;
    const int e = (int)(math_bits(x) >> 52) - 1075, first = 32 + e - 2;
    uint64_t carry = 0, before = 0;
    for (int i = LIMBS - 1; i >= 0; i--) {
        const uint64_t bits = bits_of_two_over_pi(first + 32 * i);
        const uint64_t low = bits * (uint32_t)m, high = bits * (m >> 32);
        carry += (low & 0xffffffff) + before;
        turn[i] = (uint32_t)carry;
        carry = (carry >> 32) + (low >> 32);
        before = high; /* it belongs to the next limb */
    }
}

/* (a + low) pi/2 */
static struct pair times_half_pi(double a, double low)
{
    const double p1 = 0x1.921fb54p+0, p2 = 0x1.10b4611a62633p-30;
    const double a1 = upper_half(a), a2 = a - a1;
    struct pair s = sum_of(a1 * p1, a2 * p1);
    s.low += a * p2 + low * (p1 + p2);
    const double high = s.high + s.low;
    return (struct pair){high, s.low - (high - s.high)};
}

/* reduced_angle for any finite |x| >= 2^23. */
static struct pair reduced_huge_angle(double x, int *quadrant)
{
    uint32_t turn[LIMBS];
    quarters_of(fabs(x), turn);
    *quadrant = (int)(turn[0] >> 30);
    const int up = turn[0] >> 29 & 1; /* from half on, the next multiple of pi/2 is nearer */
    const double sign = up ? -1 : 1;
    struct pair a = {0, 0};
    double unit = 0x1p-30;
    for (int i = 0; i < LIMBS; i++, unit *= 0x1p-32) {
        const uint32_t limb = (up ? ~turn[i] : turn[i]) & (i ? 0xffffffff : 0x3fffffff);
        const struct pair s = sum_of(a.high, (double)limb * unit);
        a = (struct pair){s.high, a.low + s.low};
    }
    *quadrant = (*quadrant + up) % 4;
    struct pair r = times_half_pi(sign * a.high, sign * a.low);
    if (x > 0)
        return r;
    *quadrant = (4 - *quadrant) % 4;
    return (struct pair){-r.high, -r.low};
}

/* sin(r + low) for |r| <= pi/4 */
static double sin_near(struct pair r)
{
    double z = r.high * r.high;
    double p = 0x1.71de3552d4170p-19 + z * (-0x1.ae5e4863be542p-26 + z * 0x1.5d8a19221d589p-33);
    p = 0x1.111111110f740p-7 + z * (-0x1.a01a019be89edp-13 + z * p);
    p = -0x1.5555555555548p-3 + z * p;
    return r.high + (r.high * (z * p) + r.low * (1 - 0.5 * z));
}

/* cos(r + low) for |r| <= pi/4; what 1 - z/2 loses in rounding is added back. */
static double cos_near(struct pair r)
{
    double z = r.high * r.high, h = 0.5 * z, w = 1 - h;
    double p = -0x1.27e4f7eff3a13p-22 + z * (0x1.1ee9d9a218105p-29 + z * -0x1.8fa4da29b2beep-37);
    p = -0x1.6c16c16c1502ap-10 + z * (0x1.a01a019c8f1d8p-16 + z * p);
    p = 0x1.555555555554bp-5 + z * p;
    return w + (((1 - w) - h) + (z * z * p - r.high * r.low));
}

static double sin_of(double x, int quarter_turns)
{
    if (!(fabs(x) < INFINITY))
        return NAN;
    int quadrant;
    struct pair r =
        fabs(x) < 0x1p23 ? reduced_angle(x, &quadrant) : reduced_huge_angle(x, &quadrant);
    quadrant = (quadrant + quarter_turns) % 4;
    double y = quadrant % 2 ? cos_near(r) : sin_near(r);
    return quadrant < 2 ? y : -y;
}

double math_sin(double x)
{
    return fabs(x) < 0x1p-27 ? x : sin_of(x, 0); /* -0 stays -0 */
}

double math_cos(double x)
{
    return sin_of(x, 1);
}

/*
 * log(x) to some 65 bits for a positive, finite x, since its error is multiplied by up to 745 in a
 * power; high has 26 bits. As in math_log_reduced, log(1 + f) = 2 s + 2/3 s^3 + s^5 P(s^2), but
 * s = s1 + s2 and the first two terms are pairs.
 */
static struct pair log_pair(double x)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    double k = x < 0x1p-1022 ? -54 : 0;
    uint64_t bits = math_bits(x < 0x1p-1022 ? x * 0x1p54 : x) + (one - root_half);
    k += (double)(int)(bits >> 52) - 1023;
    double m = math_from_bits((bits & 0x000fffffffffffff) + root_half), f = m - 1;

    double d1 = upper_half(m + 1), d2 = m - (d1 - 1); /* s = f / (d1 + d2) */
    double s1 = upper_half(f / (m + 1)), s2 = ((f - s1 * d1) - s1 * d2) / (m + 1);
    double z = s1 * s1, z1 = upper_half(z);
    double c = s1 * z1, c1 = upper_half(c), c2 = (c - c1) + s1 * (z - z1) + 3 * s2 * (z + s1 * s2);
    double term = c1 * 0x1.555555p-1, term_low = c1 * 0x1.5555555555555p-27;
    term_low += c2 * 0x1.5555555555555p-1; /* 2/3 s^3 */

    z += 2 * s1 * s2; /* s^2 rounded */
    double p = 0x1.0f7f2103b3146p-3 + z * 0x1.0e4a2d236eaafp-3;
    p = 0x1.745ce9b6d714ep-3 + z * (0x1.3b1ef45d8a6f4p-3 + z * p);
    p = 0x1.9999999999b33p-2 + z * (0x1.2492492457807p-2 + z * (0x1.c71c722de3330p-3 + z * p));
    struct pair a = sum_of(k * MATH_LN2_HIGH, 2 * s1);
    struct pair b = sum_of(a.high, term);
    double low = b.low + a.low + k * MATH_LN2_LOW + 2 * s2 + term_low + (c1 + c2) * z * p;
    double high = upper_half(b.high + low);
    return (struct pair){high, (b.high - high) + low};
}

/* exp(x + low) for |x| < 800, with an error of little more than half a unit in the last place; see
   math_exp. */
static double exp_of_sum(double x, double low)
{
    const double magic = 0x1.8p52 + 2046;
    double shifted = x * MATH_PER_LN2 + magic, n = shifted - magic, high = x - n * MATH_LN2_HIGH;
    low -= n * MATH_LN2_LOW;
    struct pair y = sum_of(1, high);
    double sum = y.high + (y.low + (math_exp_tail(high + low) + low));
    uint64_t both = math_bits(shifted), half = both >> 1;
    return sum * math_from_bits(half << 52) * math_from_bits((both - half) << 52);
}

/* x^y for a positive, finite x other than 1 */
static double pow_positive(double x, double y)
{
    struct pair l = log_pair(x);
    if (!(fabs(y * l.high) < 800))
        return (y > 0) == (l.high > 0) ? INFINITY : 0;
    double y1 = upper_half(y);
    return exp_of_sum(y1 * l.high, (y - y1) * l.high + y * l.low);
}

static int is_integer(double y)
{
    return floor(y) == y;
}

double math_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y || (x < 0 && x > -INFINITY && !is_integer(y)))
        return NAN;
    double a = fabs(x), power;
    if (a == 1)
        power = 1;
    else if (a == 0 || a == INFINITY)
        power = (a == 0) == (y > 0) ? 0 : INFINITY;
    else if (fabs(y) == INFINITY)
        return (a > 1) == (y > 0) ? INFINITY : 0;
    else
        power = pow_positive(a, y);
    const int is_odd = is_integer(y) && !is_integer(y / 2);
    return signbit(x) && is_odd ? -power : power;
}
