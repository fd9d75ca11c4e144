#include "teach/report/figure.h"
#include "teach/report/curves.h"
#include "teach/report/maps.h"
#include "teach/report/signature.h"
#include "tensor/memory.h"
#include <string.h>

enum figure figure_named(const char *name)
{
    static const char *const names[] = {"attention", "alignment", "loss"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return (enum figure)(FIGURE_ATTENTION + i);
    sb_fail("--figure: \"%s\" is none of attention, alignment, loss", name);
    return NO_FIGURE;
}

char *figure_svg(enum figure figure, const struct subject *subject, const struct run_log *log)
{
    struct html html = {.alone = true};
    bool ok = false;
    html_add(&html, SIGNATURE_FIGURE);
    if (figure == FIGURE_LOSS)
        ok = curves_loss(&html, log, subject->example.choices);
    else
        ok = maps_of(&html, subject,
                     figure == FIGURE_ATTENTION ? attention_picture : alignment_picture);
    char *svg = html_svg_end(&html);
    if (ok)
        return svg;
    memory_free(svg);
    return NULL;
}
