#include "ops/context.h"
#include "autograd/node.h"
#include "ops/runs.h"

sb_piece sb_piece_zigzag(int64_t length, int ranks, int rank, int64_t *here)
{
    if (length < 0 || ranks < 1 || rank < 0 || rank >= ranks || !here) {
        sb_fail(
            "piece_zigzag: length is %lld, rank %d of %d, here %s; expected a length of at least "
            "0, a rank below their number, and a place for the result",
            (long long)length, rank, ranks, here ? "given" : "NULL");
        return (sb_piece){0};
    }
    const int64_t chunks = 2 * (int64_t)ranks, other = chunks - 1 - rank;
    const int64_t first = length * rank / chunks, turn = length * (rank + 1) / chunks - first;
    const int64_t second = length * other / chunks;
    *here = turn + length * (other + 1) / chunks - second;
    return turn > 0 ? (sb_piece){length, first, turn, second} : (sb_piece){length, second, 0, 0};
}

static const sb_piece all = {0};

const sb_piece *partition_items(const sb_partition *partition)
{
    return partition ? &partition->items : &all;
}

const sb_piece *partition_piece(const sb_partition *partition, sb_sequence along)
{
    if (!partition || along == SB_SEQUENCE_NONE)
        return &all;
    return along == SB_SEQUENCE_TARGET ? &partition->target : &partition->source;
}

const sb_context *context_open(void)
{
    static const sb_context none = {0};
    const struct open_tape *tape = tape_open();
    return tape && tape->context ? tape->context : &none;
}

bool context_by_row(const sb_device *device)
{
    return tape_evaluates() && (device == sb_device_cpu() || context_open()->batch_invariant);
}

int context_runs(sb_sequence along, int64_t here, struct run run[2])
{
    piece_runs(partition_piece(context_open()->partition, along), here, run);
    return run[1].count > 0 ? 2 : 1;
}
