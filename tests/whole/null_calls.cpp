/* C++ deduces the types of a function's parameters, so that the list of exported names is enough.
 */
#include "null_calls.h"
#include "softback.h"
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace
{

sb_tape tape;

/* ---- valid arguments, by type ---- */

double numbers[4096];
const char *const texts[] = {"x", "y", "x", "y"};

sb_tensor *leaf()
{
    return sb_tensor_requires_grad(sb_tensor_full(SB_F64, SB_SHAPE(1, 1, 4), 0.5));
}

sb_parameters *parameters()
{
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    sb_parameters_add(set, "w", SB_SHAPE(2), {SB_INITIAL_CONSTANT, 1});
    return set;
}

sb_pairs *pairs()
{
    const char text[] = "a\tb\nb\ta\nab\tba\n";
    return sb_pairs_parse("pairs", text, sizeof text - 1, nullptr);
}

sb_vocabulary *vocabulary()
{
    return sb_vocabulary_new(texts, 4, nullptr);
}

sb_data *data()
{
    return sb_data_task("copy", 1);
}

sb_seq2seq *seq2seq()
{
    sb_seq2seq_options options = {};
    options.transformer.width = 8;
    options.transformer.encoder_layers = options.transformer.decoder_layers = 1;
    return sb_seq2seq_for(sb_parameters_new(1), vocabulary(), vocabulary(), &options);
}

template <class T, class = void> struct is_complete : std::false_type {
};
template <class T> struct is_complete<T, decltype(void(sizeof(T)))> : std::true_type {
};

/* Any other type: numbers are 1, structs are zero, and so is what pointers lead to. An opaque
   object without a line below is NULL. */
template <class T> struct valid {
    static T get()
    {
        if constexpr (std::is_arithmetic_v<T>)
            return T(1);
        else
            return T{};
    }
};
template <class T> struct valid<T *> {
    static T *get()
    {
        if constexpr (std::is_void_v<T> || std::is_arithmetic_v<T>)
            return (T *)numbers;
        else if constexpr (std::is_pointer_v<T>) {
            static std::remove_const_t<T> several[8];
            for (auto &one : several)
                one = valid<std::remove_const_t<T>>::get();
            return several;
        } else if constexpr (is_complete<T>::value)
            return (T *)calloc(8, sizeof(T)); /* a layer, options, a result */
        else
            return nullptr;
    }
};
template <class R, class... A> struct valid<R (*)(A...)> {
    static R (*get())(A...)
    {
        return [](A...) { return R(); };
    }
};

#define VALID(type, value)                                                                         \
    template <> struct valid<type> {                                                               \
        static type get()                                                                          \
        {                                                                                          \
            return value;                                                                          \
        }                                                                                          \
    };
#define VALID_OBJECT(type, value) VALID(type *, value) VALID(const type *, value)

VALID(const char *, "x")
VALID_OBJECT(sb_tape, &tape)
VALID_OBJECT(sb_tensor, leaf())
VALID_OBJECT(sb_parameters, parameters())
VALID_OBJECT(sb_optimiser, sb_adam_new(parameters(), nullptr))
VALID_OBJECT(sb_average, sb_average_new(parameters(), 0.5))
VALID(const sb_device *, sb_device_cpu())
VALID_OBJECT(sb_mask, sb_mask_causal())
VALID_OBJECT(sb_kv_cache, sb_kv_cache_new())
VALID_OBJECT(sb_pairs, pairs())
VALID_OBJECT(sb_vocabulary, vocabulary())
VALID_OBJECT(sb_data, data())
VALID_OBJECT(sb_seq2seq, seq2seq())
VALID_OBJECT(sb_decoder, sb_seq2seq_decoder(seq2seq()))
VALID_OBJECT(sb_decoder_state, sb_decoder_state_new(sb_seq2seq_decoder(seq2seq())))
VALID_OBJECT(sb_trainer, sb_trainer_new(seq2seq(), data(), nullptr))
VALID_OBJECT(sb_description, sb_description_new("x"))
VALID_OBJECT(sb_communicator, sb_communicator_world())

bool backward(sb_node *)
{
    return true;
}
const sb_operation operation = {"test", "x", backward, false, false};
sb_node *node()
{
    sb_tensor *x = leaf();
    return sb_node_new(&operation, 1, &x, 1, nullptr, 0);
}
VALID(const sb_operation *, &operation)
VALID_OBJECT(sb_node, node())

/* ---- the calls ---- */

/* Argument n of a call that leaves pointer `without` out; -1 means that all are 0. */
template <class T> T argument(int n, int without)
{
    if (without < 0 || (std::is_pointer_v<T> && n == without))
        return T{};
    return valid<T>::get();
}

template <class R, class... A, size_t... N>
void call_without(R (*f)(A...), [[maybe_unused]] int without, std::index_sequence<N...>)
{
    (void)f(argument<A>((int)N, without)...);
}

template <class R, class... A> void call(R (*f)(A...), volatile int *at)
{
    const bool is_pointer[] = {std::is_pointer_v<A>..., false};
    for (int open = 0; open < 2; open++)
        for (int without = -1; without < (int)sizeof...(A); without++) {
            if (without >= 0 && !is_pointer[without])
                continue;
            *at = without + 1;
            if (open)
                sb_tape_begin(&tape, SB_RECORD);
            call_without(f, without, std::index_sequence_for<A...>());
            if (open)
                sb_tape_end(&tape);
        }
}

/* sb_fail, the only function with further arguments. */
void call(void *(*f)(const char *, ...), volatile int *at)
{
    *at = 1;
    (void)f(nullptr);
}

struct exported {
    const char *name;
    void (*call)(volatile int *at);
};

const exported all[] = {
#define X(name) {#name, [](volatile int *at) { call(name, at); }},
#include "exports.inc"
};

} // namespace

const char *null_call_name(int i)
{
    return i < (int)(sizeof all / sizeof *all) ? all[i].name : nullptr;
}

void null_call(int i, volatile int *at)
{
    all[i].call(at);
}
