#include "cuda/pack.cuh"
#include "cuda/sums.cuh"
#include "ops/update.h"

namespace
{

/* The parameters of the step, prepared as on the CPU. */
template <class T> struct adam_numbers {
    T b1, b2, a1, a2, scale, l2, keep, rate, epsilon, root;

    adam_numbers(const adam_step &s)
        : b1((T)s.beta1), b2((T)s.beta2), a1((T)(1 - s.beta1)), a2((T)(1 - s.beta2)),
          scale((T)s.gradient_scale), l2((T)s.coupled_decay),
          keep((T)(1 - s.rate * s.decoupled_decay)), rate((T)(s.rate / s.correction1)),
          epsilon((T)s.epsilon), root((T)(1 / sqrt(s.correction2)))
    {
    }
};

template <class T>
__device__ void adam_all(int64_t n, const adam_numbers<T> &s, const T *g_, T *w_, T *m_, T *v_)
{
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        const pack<T> g = pack<T>::load(g_ + at, left);
        pack<T> w = pack<T>::load(w_ + at, left), m = pack<T>::load(m_ + at, left),
                v = pack<T>::load(v_ + at, left);
        for (int e = 0; e < PACK<T>; e++) {
            const T gradient = s.scale * g.of[e] + s.l2 * w.of[e];
            m.of[e] = s.b1 * m.of[e] + s.a1 * gradient;
            v.of[e] = s.b2 * v.of[e] + s.a2 * gradient * gradient;
            w.of[e] =
                s.keep * w.of[e] - s.rate * m.of[e] / (real_sqrt(v.of[e]) * s.root + s.epsilon);
        }
        w.store(w_ + at, left);
        m.store(m_ + at, left);
        v.store(v_ + at, left);
    }
}

template <class T>
__global__ void adam_packs(int64_t n, adam_numbers<T> s, RESTRICTED(const T) g, RESTRICTED(T) w,
                           RESTRICTED(T) m, RESTRICTED(T) v)
{
    adam_all<T>(n, s, g, w, m, v);
}

template <class T>
bool adam(int64_t n, const adam_step *step, const void *g, void *w, void *m, void *v)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), (adam_packs<T>), n, adam_numbers<T>(*step), (const T *)g,
                (T *)w, (T *)m, (T *)v);
    return launched("adam");
}

template <class T> struct sgd_numbers {
    T rate, momentum, decay, scale, ahead, now;

    sgd_numbers(const sgd_step &s)
        : rate((T)s.rate), momentum((T)s.momentum), decay((T)s.decay), scale((T)s.gradient_scale),
          ahead(s.nesterov ? momentum : 1), now(s.nesterov ? 1 : 0)
    {
    }
};

template <class T>
__global__ void sgd_packs(int64_t n, sgd_numbers<T> s, RESTRICTED(const T) g_, RESTRICTED(T) w_,
                          RESTRICTED(T) u_)
{
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        const pack<T> g = pack<T>::load(g_ + at, left);
        pack<T> w = pack<T>::load(w_ + at, left), u = pack<T>::load(u_ + at, left);
        for (int e = 0; e < PACK<T>; e++) {
            const T gradient = s.scale * g.of[e] + s.decay * w.of[e];
            u.of[e] = s.momentum * u.of[e] + gradient;
            w.of[e] -= s.rate * (s.now * gradient + s.ahead * u.of[e]);
        }
        w.store(w_ + at, left);
        u.store(u_ + at, left);
    }
}

template <class T> bool sgd(int64_t n, const sgd_step *step, const void *g, void *w, void *u)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), (sgd_packs<T>), n, sgd_numbers<T>(*step), (const T *)g,
                (T *)w, (T *)u);
    return launched("sgd");
}

template <class T> struct square_terms {
    const T *x;

    __device__ int start(int64_t) const
    {
        return 0;
    }
    __device__ double term(int, int64_t i) const
    {
        return (double)x[i] * (double)x[i];
    }
};

template <class T> __global__ void find_first_bad(int64_t n, const T *x, unsigned long long *first)
{
    GRID_STRIDE(i, n)
    if (!isfinite(x[i]))
        atomicMin(first, (unsigned long long)i);
}

/* Downloads 8 bytes and waits for them. */
bool fetch(void *to, const void *from)
{
    return cuda_ok(cudaMemcpyAsync(to, from, 8, cudaMemcpyDeviceToHost, stream), "squares") &&
           cuda_ok(cudaStreamSynchronize(stream), "squares");
}

/* The caller needs the sum for its next decision, so this waits. */
template <class T> bool squares(int64_t n, const void *x, double *sum, int64_t *first_bad)
{
    *sum = 0;
    *first_bad = -1;
    const scratch answer("squares", 8);
    if (!answer ||
        !sum_all("squares", 1, n, true, square_terms<T>{(const T *)x},
                 sum_target<double>{1, false, answer.as<double>()}) ||
        !fetch(sum, answer.as<void>()))
        return false;
    if (isfinite(*sum))
        return true;
    unsigned long long *const first = answer.as<unsigned long long>();
    cudaMemsetAsync(first, 0xff, 8, stream);
    LAUNCH_EACH(n, (find_first_bad<T>), n, (const T *)x, first);
    return launched("squares") && fetch(first_bad, first);
}

/* outcome[1] is the sum of squares, and becomes the norm. */
template <class T> __global__ void judge_norm(const float *loss, double limit, double *outcome)
{
    const double norm = sqrt(outcome[1]);
    const double scale = limit > 0 ? fmin(1.0, limit / (norm + 1e-6)) : 1;
    outcome[0] = *loss;
    outcome[1] = norm;
    const T square = (T)(norm * scale * norm * scale);
    outcome[2] = isfinite(*loss) && isfinite(norm) && isfinite(square) ? scale : NAN;
}

template <class T>
bool judge(int64_t n, const void *x, const void *loss, double limit, double *outcome)
{
    if (!sum_all("squares", 1, n, true, square_terms<T>{(const T *)x},
                 sum_target<double>{1, false, outcome + 1}))
        return false;
    LAUNCH(judge_norm<T>, dim3(1), dim3(1), 0, stream, (const float *)loss, limit, outcome);
    return launched("squares");
}

template <class T> void store_adam_numbers(const adam_step *step, void *numbers)
{
    static_assert(sizeof(adam_numbers<T>) <= ADAM_NUMBERS);
    *static_cast<adam_numbers<T> *>(numbers) = adam_numbers<T>(*step);
}

template <class T>
__global__ void adam_packs_judged(int64_t n, const adam_numbers<T> *numbers, const double *outcome,
                                  RESTRICTED(const T) g, RESTRICTED(T) w, RESTRICTED(T) m,
                                  RESTRICTED(T) v)
{
    adam_numbers<T> s = *numbers;
    s.scale = (T)outcome[2];
    if (!isnan(outcome[2]))
        adam_all<T>(n, s, g, w, m, v);
}

template <class T>
bool adam_judged(int64_t n, const void *numbers, const double *outcome, const void *g, void *w,
                 void *m, void *v)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), (adam_packs_judged<T>), n, (const adam_numbers<T> *)numbers,
                outcome, (const T *)g, (T *)w, (T *)m, (T *)v);
    return launched("adam");
}

template <class T>
__global__ void average_packs(int64_t n, T old_share, T new_share, RESTRICTED(const T) x_,
                              RESTRICTED(T) y_)
{
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        const pack<T> x = pack<T>::load(x_ + at, left);
        pack<T> y = pack<T>::load(y_ + at, left);
        for (int e = 0; e < PACK<T>; e++)
            y.of[e] = old_share * y.of[e] + new_share * x.of[e];
        y.store(y_ + at, left);
    }
}

template <class T> bool average(int64_t n, double decay, const void *x, void *y)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), (average_packs<T>), n, (T)decay, (T)(1 - decay),
                (const T *)x, (T *)y);
    return launched("average");
}

} // namespace

KERNELS(update, adam<T>, sgd<T>, squares<T>, nullptr, average<T>, judge<T>, store_adam_numbers<T>,
        adam_judged<T>);
