#include "cuda/ids.cuh"

static bool open_questions;

namespace
{

/* The pending questions by number: a ring buffer, whose entries are reused long after their answers
   were read. */
struct question {
    const char *what;
    int64_t least, limit;
    bool is_sentence;
};
enum { QUESTIONS = 4096, LASTING = 12288 };
question asked[QUESTIONS + LASTING];
unsigned next_question, lasting;

bool same(const question &a, const question &b)
{
    return a.what == b.what && a.least == b.least && a.limit == b.limit &&
           a.is_sentence == b.is_sentence;
}

/* The number of a question of a graph, which keeps it, since each launch asks it again. Graphs that
   ask the same share a number. */
unsigned lasting_number_of(const question &q)
{
    for (unsigned i = 0; i < lasting; i++)
        if (same(asked[QUESTIONS + i], q))
            return QUESTIONS + i;
    return lasting < LASTING ? QUESTIONS + lasting++ : next_question % QUESTIONS;
}

unsigned number_of(const question &q)
{
    const unsigned number = capturing ? lasting_number_of(q) : next_question++ % QUESTIONS;
    asked[number] = q;
    open_questions = true;
    return number;
}

/* On the device: the question's number in the upper 16 bits and the index of the bad id in the
   lower 48; NOTHING if there is none. The smallest finding is kept, independent of the order of
   threads. */
typedef unsigned long long finding;
const finding NOTHING = ~0ull;
finding *found, *fetched;

__global__ void find_bad_ids(int64_t count, const int32_t *ids, int64_t least, int64_t limit,
                             finding question, finding *found)
{
    GRID_STRIDE(i, count)
    if (ids[i] < least || ids[i] >= limit)
        atomicMin(found, question << 48 | (finding)i);
}

bool ready()
{
    if (found)
        return true;
    return cuda_ok(cudaMalloc((void **)&found, sizeof *found), "ids") &&
           cuda_ok(cudaMallocHost((void **)&fetched, sizeof *fetched), "ids") &&
           cuda_ok(cudaMemsetAsync(found, 0xff, sizeof *found, stream), "ids");
}

} // namespace

int64_t first_bad_id(const char *what, int64_t count, const int32_t *ids, int64_t least,
                     int64_t limit)
{
    if (count == 0 || !ready())
        return -1;
    const unsigned number = number_of({what, least, limit, false});
    LAUNCH_EACH(count, find_bad_ids, count, ids, least, limit, (finding)number, found);
    launched(what);
    return -1;
}

bad_question ask_kernel(const char *sentence)
{
    if (!ready())
        return {0, nullptr};
    return {number_of({sentence, 0, 0, true}), found};
}

void ids_ask_again()
{
    open_questions = found != nullptr;
}

void ids_collect()
{
    if (!open_questions)
        return;
    cudaMemcpyAsync(fetched, found, sizeof *found, cudaMemcpyDeviceToHost, stream);
    cudaMemsetAsync(found, 0xff, sizeof *found, stream);
}

bool ids_settle()
{
    finding f = open_questions ? *fetched : NOTHING;
    open_questions = false;
    if (f == NOTHING)
        return true;
    const question &q = asked[f >> 48];
    if (q.is_sentence)
        return host->fail(q.what, (long long)(f & 0xffffffffffff)) != nullptr;
    return host->fail("%s[%lld] is not in %lld..%lld", q.what, (long long)(f & 0xffffffffffff),
                      (long long)q.least, (long long)q.limit - 1) != nullptr;
}
