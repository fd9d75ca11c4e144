/*
 * softback bench --worker: the program's side of tests/bench/compare.py. It reads lines from
 * standard input and answers each with one line of JSON, so that one run can time several libraries
 * in turns; the workers in tests/bench/peers have the same protocol.
 *
 *     machine                    the processor or device
 *     open KIND KEY=NUMBER ...   opens the job to be measured, in place of an open one
 *     export FILE                its weights and inputs, as safetensors, for the peers to load
 *     check                      numbers that every library must get: {"numbers": [...]}
 *     steps N                    measures N times: {"seconds": [...]}
 *     rate NAME NUMBER ...       the highest rate of this machine: {"rate": ...}
 *
 * A failure is {"error": "..."}.
 */
#include "ops/gemm.h"
#include "program/bench/job.h"
#include "tensor/memory.h"
#include "tensor/version.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers: each is a JSON object, or NULL on failure ---- */

static json_t *worker_numbers(const char *name, const struct job_numbers *numbers)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < numbers->count; i++)
        json_array_append_new(list, json_real(numbers->value[i]));
    return json_pack("{s:o}", name, list);
}

static json_t *worker_machine(void)
{
    return json_pack("{s:s, s:i, s:s, s:s}", "version", sb_version(), "threads", sb_threads(),
                     "kernels", kernel_cpu_name(), "products", gemm_library());
}

static json_t *worker_rate(const char *words)
{
    const double rate = bench_rate(words);
    return rate > 0 ? json_pack("{s:f}", "rate", rate) : NULL;
}

static json_t *worker_open(struct job *job, const char *line)
{
    job_close(job);
    if (job_open(job, line))
        return json_object();
    job_close(job);
    return NULL;
}

static json_t *worker_export(const struct job *job, const char *path)
{
    const int n = job->kind->tensors(job->self, NULL);
    sb_named_tensor *items = memory_new((size_t)n * sizeof *items);
    if (!items)
        return sb_fail("bench: out of memory");
    job->kind->tensors(job->self, items);
    const bool ok = sb_safetensors_save(path, n, items, 0, NULL);
    memory_free(items);
    return ok ? json_object() : NULL;
}

static json_t *worker_check(const struct job *job)
{
    struct job_numbers numbers = {0};
    json_t *answer = job_check(job, &numbers) ? worker_numbers("numbers", &numbers) : NULL;
    memory_free(numbers.value);
    return answer;
}

static json_t *worker_steps(struct job *job, const char *count)
{
    struct job_numbers seconds = {0};
    bool ok = true;
    for (long n = strtol(count, NULL, 10); ok && n > 0; n--) {
        const double taken = job_step(job);
        ok = taken >= 0 && job_add(&seconds, taken);
    }
    json_t *answer = ok ? worker_numbers("seconds", &seconds) : NULL;
    memory_free(seconds.value);
    return answer;
}

static json_t *worker_answer(struct job *job, const char *line)
{
    char command[16] = "";
    int at = 0;
    sscanf(line, "%15s %n", command, &at);
    if (strcmp(command, "machine") == 0)
        return worker_machine();
    if (strcmp(command, "rate") == 0)
        return worker_rate(line + at);
    if (strcmp(command, "open") == 0)
        return worker_open(job, line + at);
    if (!job->self)
        return sb_fail("bench: nothing is open for \"%s\"", line);
    if (strcmp(command, "export") == 0)
        return worker_export(job, line + at);
    if (strcmp(command, "check") == 0)
        return worker_check(job);
    if (strcmp(command, "steps") == 0)
        return worker_steps(job, line + at);
    return sb_fail("bench: \"%s\" is no command", line);
}

static void worker_print(json_t *answer)
{
    json_dumpf(answer, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(answer);
}

void bench_worker(void)
{
    struct job job = {0};
    char line[4096];
    worker_print(json_pack("{s:b}", "ready", true));
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        json_t *answer = worker_answer(&job, line);
        worker_print(answer ? answer : json_pack("{s:s}", "error", sb_error()));
    }
    job_close(&job);
}
