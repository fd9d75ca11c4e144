/*
 * Pairs of a source and a target text, from memory or from files.
 *
 * Files are TSV, a line `source<TAB>target` for each pair, or two files whose lines belong
 * together. They are UTF-8; LF and CRLF end a line, the last line may lack its end, and a
 * byte-order mark is skipped. These lines are malformed:
 *
 *   train.tsv:17: no tab between source and target
 *   train.tsv:18: 2 tabs, expected one between source and target
 *   train.tsv:19: the source is empty          (or the target; or the line)
 *   train.tsv:20: byte 5 (0xff) is not UTF-8   (bytes of a line are counted from 1)
 *   train.tsv:21: byte 5 is NUL, as in UTF-16, not UTF-8
 *   train.tsv:22: 70,000 bytes, expected at most 65,536
 *
 * By default they are skipped and counted, and the first messages are kept; reading fails when
 * no pair is left or more than one line in ten is malformed. With `strict` the first one fails.
 */
#ifndef SOFTBACK_MODELS_TEXT_PAIRS_H
#define SOFTBACK_MODELS_TEXT_PAIRS_H

#include "../../tensor/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct sb_pairs sb_pairs;

enum { SB_PAIRS_PROBLEMS = 5, SB_PAIRS_LINE = 65536 };

typedef struct {
    bool strict;    /* fail on the first malformed line */
    int64_t length; /* the longest line in bytes; 0: SB_PAIRS_LINE */
} sb_pairs_options;

SB_API sb_pairs *sb_pairs_new(void); /* without any pair; NULL without memory */
SB_API void sb_pairs_free(sb_pairs *pairs);

/* Adds a pair of copies. Fails when a text is not UTF-8 or there is no memory. */
SB_API bool sb_pairs_add(sb_pairs *pairs, const char *source, const char *target);

SB_API int64_t sb_pairs_count(const sb_pairs *pairs); /* NULL: 0 */
/* The texts of pair `index`, owned by the pairs; fails when there is no such pair. */
SB_API const char *sb_pairs_source(const sb_pairs *pairs, int64_t index);
SB_API const char *sb_pairs_target(const sb_pairs *pairs, int64_t index);
/* All sources and all targets, owned by the pairs; the arrays hold until a pair is added, and are
   NULL before the first. */
SB_API const char *const *sb_pairs_sources(const sb_pairs *pairs);
SB_API const char *const *sb_pairs_targets(const sb_pairs *pairs);

/* The number of malformed lines that were skipped, and the messages of the first SB_PAIRS_PROBLEMS
   of them; NULL, without a message, after the last. */
SB_API int64_t sb_pairs_skipped(const sb_pairs *pairs);
SB_API const char *sb_pairs_problem(const sb_pairs *pairs, int64_t index);

/* Reads TSV from a file; "-" is the standard input. Options may be NULL. */
SB_API sb_pairs *sb_pairs_read(const char *path, const sb_pairs_options *options);
/* Reads two files with as many lines each. */
SB_API sb_pairs *sb_pairs_read_two(const char *source_path, const char *target_path,
                                   const sb_pairs_options *options);
/* Reads TSV from memory; `name` stands for the file in messages. */
SB_API sb_pairs *sb_pairs_parse(const char *name, const char *text, size_t size,
                                const sb_pairs_options *options);

/*
 * Divides pairs into two new objects, with `held_out` pairs in the second. A hash of the
 * source decides which ones, not the position in the file; all pairs of one source are on one side,
 * so that a held-out source has never been trained on. When sources with several pairs do not add
 * up to `held_out`, fewer are held out. Both sides keep their order. Fails, and makes
 * neither, when one side would be empty, or without memory.
 */
SB_API bool sb_pairs_divide(const sb_pairs *pairs, int64_t held_out, sb_pairs **rest,
                            sb_pairs **held);

/* How many pairs of b have a source that is also a's: data leakage, if one is a test of the other.
   -1 without memory. */
SB_API int64_t sb_pairs_shared(const sb_pairs *a, const sb_pairs *b);

#endif
