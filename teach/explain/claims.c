/* softback explain claims: common statements about attention, and what is measured. */
#include "teach/explain/claims.h"
#include "teach/explain/topics.h"

static const struct claim *const lists[] = {claims_of_scores, claims_of_masks, claims_of_attention,
                                            claims_of_cost};

const struct claim *claim_at(int i)
{
    for (int l = 0; l < (int)(sizeof lists / sizeof lists[0]); l++)
        for (const struct claim *claim = lists[l]; claim->says; claim++)
            if (i-- == 0)
                return claim;
    return NULL;
}

static void write(struct page *page, const struct explain_options *o)
{
    static const char *const verdicts[] = {"false", "depends", "true"};
    (void)o;
    page_title(page, "common statements, measured");
    page_text(page, "Common statements about attention. Each is measured now, by the library; "
                    "\"depends\": true under a condition that the statement leaves out.");
    page_table(page, "claims", "statement | measured | verdict");
    page_records(page);
    for (int i = 0; claim_at(i); i++) {
        struct measured measured = {0};
        page_need(page, !page->failed && claim_at(i)->measure(&measured));
        PAGE_ROW(page, cell_word(claim_at(i)->says), cell_word(measured.text),
                 cell_word(verdicts[measured.verdict]));
    }
}

const struct topic topic_claims = {
    "claims", "common statements about attention, each measured on the spot", 0, NULL, write};
