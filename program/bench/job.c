#include "program/bench/job.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct job_kind *const kinds[] = {
    &job_seq2seq, &job_language_model, &job_decoding,      &job_decoding_step, &job_attention,
    &job_softmax, &job_layer_norm,     &job_cross_entropy, &job_adam,          &job_product,
};

/* ---- lines ---- */

/* The text after "key=" in the line; NULL when there is none. */
static const char *job_value(const char *line, const char *key)
{
    const size_t size = strlen(key);
    for (const char *word = strchr(line, ' '); word; word = strchr(word, ' ')) {
        word++;
        if (strncmp(word, key, size) == 0 && word[size] == '=')
            return word + size + 1;
    }
    return NULL;
}

double job_number(const char *line, const char *key)
{
    const char *value = job_value(line, key);
    return value ? strtod(value, NULL) : 0;
}

int64_t job_size(const char *line, const char *key)
{
    return (int64_t)job_number(line, key);
}

bool job_flag(const char *line, const char *key)
{
    return job_number(line, key) > 0;
}

sb_dtype job_dtype(const char *line)
{
    return job_flag(line, "bf16") ? SB_BF16 : SB_F32;
}

/* ---- numbers ---- */

bool job_add(struct job_numbers *numbers, double value)
{
    if (!memory_room(&numbers->value, numbers->count, &numbers->room, sizeof *numbers->value))
        return sb_fail("bench: out of memory");
    numbers->value[numbers->count++] = value;
    return true;
}

bool job_add_measure(struct job_numbers *numbers, const sb_tensor *x)
{
    const int64_t n = x ? sb_tensor_size(x) : 0;
    double *value = x ? memory_new((size_t)n * sizeof *value) : NULL, sum = 0;
    const bool ok = value && sb_tensor_read(x, value);
    for (int64_t i = 0; ok && i < n; i++)
        sum += (double)(1 + i % 7) * value[i] * value[i];
    memory_free(value);
    return ok && job_add(numbers, sqrt(sum));
}

/* ---- jobs ---- */

static bool job_has(const char *line, const char *keys)
{
    char key[32];
    for (int used; sscanf(keys, "%31s%n", key, &used) == 1; keys += used) {
        const char *value = job_value(line, key);
        char *end;
        if (!value)
            return sb_fail("bench: \"%s\": there is no %s", line, key);
        const double number = strtod(value, &end);
        if (end == value)
            return sb_fail("bench: \"%s\": no number after %s", line, key);
        if (!(number >= 0 && number <= 1e9))
            return sb_fail("bench: %s is %g, not in 0..1e9", key, number);
    }
    return true;
}

const struct job_kind *job_kind_of(const char *line)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t size = strlen(kinds[i]->name);
        if (strncmp(line, kinds[i]->name, size) == 0 && line[size] == ' ')
            return job_has(line, kinds[i]->needs) ? kinds[i] : NULL;
    }
    return sb_fail("bench: there is no kind for \"%s\"", line);
}

bool job_open(struct job *job, const char *line)
{
    *job = (struct job){.kind = job_kind_of(line)};
    job->self = job->kind ? memory_new(job->kind->size) : NULL;
    if (job->kind && !job->self)
        return sb_fail("bench: out of memory");
    return job->self && job->kind->open(job->self, line);
}

double job_step(void *job)
{
    const struct job *j = job;
    return j->kind->run(j->self, NULL);
}

bool job_check(const struct job *job, struct job_numbers *numbers)
{
    bool ok = true;
    for (int i = 0; ok && i < job->kind->checked; i++)
        ok = job->kind->run(job->self, numbers) >= 0;
    return ok;
}

void job_close(struct job *job)
{
    if (job->self)
        job->kind->close(job->self);
    memory_free(job->self);
    *job = (struct job){0};
    sb_device_trim(sb_device_in_use());
}
