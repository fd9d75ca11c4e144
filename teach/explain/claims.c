/* softback explain claims: common statements about attention, and what is measured. */
#include "teach/explain/claims.h"
#include "teach/explain/topics.h"
#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name, *heading;
    const struct claim *claims;
} lists[] = {
    {"scores", "SCORES  Softmax, the division by sqrt d, and the temperature.", claims_of_scores},
    {"masks", "MASKS  Ways to block keys.", claims_of_masks},
    {"attention", "ATTENTION  Heads, and what attention can compute.", claims_of_attention},
    {"cost", "COST  Work and memory.", claims_of_cost}};
enum { LISTS = sizeof lists / sizeof lists[0] };

bool conclude(struct measured *measured, bool ok, bool holds, bool partly, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(measured->text, sizeof measured->text, format, values);
    va_end(values);
    measured->verdict = holds ? VERDICT_TRUE : partly ? VERDICT_HALF : VERDICT_FALSE;
    return ok;
}

static void write(struct page *page, const struct explain_options *o)
{
    static const char *const verdicts[] = {"false", "depends", "true"};
    (void)o;
    page_title(page, "common statements, measured");
    page_text(
        page,
        "Common statements about SCORES, MASKS, ATTENTION and COST. The library measures each "
        "one now; what it finds stands below the statement, and the verdict in the margin. "
        "\"depends\": true under a condition that the statement leaves out.");
    for (int l = 0; l < LISTS; l++) {
        page_text(page, "%s", lists[l].heading);
        page_table(page, lists[l].name, "verdict | statement | measured");
        page_records(page);
        for (const struct claim *claim = lists[l].claims; claim->says; claim++) {
            struct measured measured = {0};
            page_need(page, !page->failed && claim->measure(&measured));
            PAGE_ROW(page, cell_word(verdicts[measured.verdict]), cell_word(claim->says),
                     cell_word(measured.text));
        }
    }
}

const struct topic topic_claims = {
    "claims", "common statements about attention, each measured on the spot", 0, NULL, write};
