#include "ops/place.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/storage.h"

/* The axis of `here` elements that a piece describes; the whole axis if the piece is NULL. */
static bool place_axis_of(const char *who, const char *what, int64_t here, const sb_piece *piece,
                          struct place_axis *axis)
{
    *axis = (struct place_axis){here, here, 0, here, here};
    if (piece->of == 0)
        return true;
    if (piece->of < 0 || piece->first < 0 || piece->turn < 0 || piece->second < 0)
        return sb_fail(
            "%s: %s have first %lld, turn %lld, second %lld of %lld; none may be negative", who,
            what, (long long)piece->first, (long long)piece->turn, (long long)piece->second,
            (long long)piece->of);
    const bool turns = piece->turn > 0 && piece->turn < here;
    const int64_t run = turns ? piece->turn : here, rest = here - run;
    *axis = (struct place_axis){here, piece->of, piece->first, run, piece->second};
    return (run <= piece->of - piece->first && rest <= (rest ? piece->of - piece->second : 0)) ||
           sb_fail("%s: %lld %s from %lld on are not part of %lld", who, (long long)here, what,
                   (long long)piece->first, (long long)piece->of);
}

static bool place_is_whole(const struct place_axis *axis)
{
    return axis->here == axis->of && axis->first == 0 && axis->turn == axis->here;
}

/* A range of the outermost axis is contiguous when the other axes are complete. */
static void place_finish(struct place *place)
{
    const struct place_axis *a = place->axis, *outer = a[0].of > 1 || a[0].here > 1 ? a : a + 1;
    place->flat = outer->turn == outer->here;
    for (const struct place_axis *inner = outer + 1; inner < a + 4; inner++)
        place->flat &= place_is_whole(inner);
    const int64_t rows = outer == a ? a[1].of * a[2].of : a[2].of;
    place->offset = place->flat ? outer->first * rows * place->pitch : 0;
}

bool place_of_pairs(const char *who, const int64_t pairs[4], const sb_piece *heads,
                    sb_sequence queries, sb_sequence keys, struct place *place)
{
    const sb_partition *partition = context_open()->partition;
    struct place_axis *a = place->axis;
    const bool fits =
        place_axis_of(who, "items", pairs[0], partition_items(partition), &a[0]) &&
        place_axis_of(who, "heads", pairs[1], heads, &a[1]) &&
        place_axis_of(who, "queries", pairs[2], partition_piece(partition, queries), &a[2]) &&
        place_axis_of(who, "keys", pairs[3], partition_piece(partition, keys), &a[3]);
    place->pitch = fits ? (a[3].of + 7) / 8 * 8 : 0;
    if (fits)
        place_finish(place);
    return fits;
}

bool place_of_units(const char *who, const sb_tensor *x, sb_sequence along, struct place *place)
{
    static const sb_piece all = {0};
    const sb_partition *partition = context_open()->partition;
    const int64_t B = x->rank > 1 ? x->dim[0] : 1, L = x->rank > 2 ? x->dim[1] : 1;
    int64_t C = 1;
    for (int axis = x->rank > 2 ? 2 : x->rank - 1; axis >= 0 && axis < x->rank; axis++)
        C *= x->dim[axis];
    struct place_axis *a = place->axis;
    const sb_piece *items = x->rank > 1 ? partition_items(partition) : &all;
    const sb_piece *positions = x->rank > 2 ? partition_piece(partition, along) : &all;
    const bool fits = place_axis_of(who, "", 1, &all, &a[0]) &&
                      place_axis_of(who, "items", B, items, &a[1]) &&
                      place_axis_of(who, "positions", L, positions, &a[2]) &&
                      place_axis_of(who, "", C, &all, &a[3]);
    place->pitch = C;
    if (fits)
        place_finish(place);
    return fits;
}
