#include "tests/bench/worker.h"
#include "ops/gemm.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "tensor/version.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct job_kind *const kinds[] = {
    &job_seq2seq,    &job_language_model, &job_attention, &job_softmax,
    &job_layer_norm, &job_cross_entropy,  &job_adam,      &job_decoding,
};

bool worker_bf16, worker_int8;

static const struct job_kind *kind; /* of the open job; NULL if none is open */
static void *job;

/* ---- functions for the kinds of jobs ---- */

bool worker_number(const char *line, const char *key, double *number)
{
    const size_t size = strlen(key);
    for (const char *word = strchr(line, ' '); word; word = strchr(word, ' ')) {
        word++;
        if (strncmp(word, key, size) != 0 || word[size] != '=')
            continue;
        char *end;
        *number = strtod(word + size + 1, &end);
        return end > word + size + 1 || sb_fail("worker: \"%s\": no number after %s", line, key);
    }
    return sb_fail("worker: \"%s\": there is no %s", line, key);
}

bool worker_whole(const char *line, const char *key, int64_t *number)
{
    double value;
    if (!worker_number(line, key, &value))
        return false;
    if (!(value >= 0 && value <= 1e9))
        return sb_fail("worker: %s is %g, not in 0..1e9", key, value);
    *number = (int64_t)value;
    return true;
}

bool numbers_add(struct numbers *numbers, double value)
{
    if (!memory_room(&numbers->value, numbers->count, &numbers->room, sizeof *numbers->value))
        return sb_fail("worker: out of memory");
    numbers->value[numbers->count++] = value;
    return true;
}

bool numbers_add_measure(struct numbers *numbers, sb_tensor *x)
{
    const float *value = x ? sb_tensor_data(x) : NULL;
    double sum = 0;
    for (int64_t i = 0; value && i < sb_tensor_size(x); i++)
        sum += (double)(1 + i % 7) * (double)value[i] * (double)value[i];
    return value && numbers_add(numbers, __builtin_sqrt(sum));
}

double worker_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

sb_tensor *worker_values(uint64_t seed, int rank, const int64_t *dim)
{
    sb_tensor *x = sb_tensor_zeros(SB_F32, rank, dim);
    float *value = x ? sb_tensor_data(x) : NULL;
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    for (int64_t i = 0, n = sb_tensor_size(x); value && i < n; i++)
        value[i] = (float)(2 * sb_random_uniform(&random) - 1);
    return x;
}

/* ---- answers ---- */

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text >= ' ')
            putchar(*text);
    putchar('"');
}

static void answer_numbers(const char *name, const struct numbers *numbers)
{
    printf("{\"%s\": [", name);
    for (int64_t i = 0; i < numbers->count; i++)
        printf(i ? ", %.17g" : "%.17g", numbers->value[i]);
    puts("]}");
}

static void close_job(void)
{
    if (kind)
        kind->close(job);
    kind = NULL;
    job = NULL;
    sb_device_trim(sb_device_cpu());
}

static bool open_job(const char *line)
{
    close_job();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t size = strlen(kinds[i]->name);
        if (strncmp(line, kinds[i]->name, size) != 0 || line[size] != ' ')
            continue;
        job = kinds[i]->open(line);
        kind = job ? kinds[i] : NULL;
        return job && puts("{}") >= 0;
    }
    return sb_fail("worker: there is no kind for \"%s\"", line);
}

static bool check_job(void)
{
    struct numbers numbers = {0};
    const bool ok = kind->check(job, &numbers);
    if (ok)
        answer_numbers("numbers", &numbers);
    memory_free(numbers.value);
    return ok;
}

static bool time_job(const char *count)
{
    struct numbers seconds = {0};
    bool ok = true;
    for (long n = strtol(count, NULL, 10); ok && n > 0; n--) {
        const double taken = kind->step(job);
        ok = taken >= 0 && numbers_add(&seconds, taken);
    }
    if (ok)
        answer_numbers("seconds", &seconds);
    memory_free(seconds.value);
    return ok;
}

static bool answer_machine(void)
{
    printf("{\"version\": \"%s\", \"threads\": %d, \"kernels\": ", sb_version(), sb_threads());
    print_text(kernel_cpu_name());
    printf(", \"products\": ");
    print_text(gemm_library());
    puts("}");
    return true;
}

static bool answer_rate(const char *words)
{
    const double rate = worker_rate(words);
    return rate > 0 && printf("{\"rate\": %.9g}\n", rate) > 0;
}

/* The text after the command in the line; NULL if the line has another command. */
static const char *after(const char *line, const char *command)
{
    const size_t size = strlen(command);
    if (strncmp(line, command, size) != 0 || (line[size] != ' ' && line[size] != '\0'))
        return NULL;
    return line + size + (line[size] == ' ');
}

static bool answer(const char *line)
{
    const char *rest;
    if (after(line, "machine"))
        return answer_machine();
    if ((rest = after(line, "rate")))
        return answer_rate(rest);
    if ((rest = after(line, "open")))
        return open_job(rest);
    if (!kind)
        return sb_fail("worker: nothing is open for \"%s\"", line);
    if ((rest = after(line, "export")))
        return kind->save(job, rest) && puts("{}") >= 0;
    if (after(line, "check"))
        return check_job();
    if ((rest = after(line, "steps")))
        return time_job(rest);
    return sb_fail("worker: \"%s\" is no command", line);
}

int main(int argc, char **argv)
{
    char line[4096];
    worker_bf16 = argc > 1 && strcmp(argv[1], "--bf16") == 0;
    worker_int8 = argc > 1 && strcmp(argv[1], "--int8") == 0;
    puts("{\"ready\": true}");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (!answer(line)) {
            printf("{\"error\": ");
            print_text(sb_error() ? sb_error() : "no message");
            puts("}");
        }
        fflush(stdout);
    }
    close_job();
    return 0;
}
