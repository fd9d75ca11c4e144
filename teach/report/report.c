#include "teach/report/report.h"
#include "models/drawing_graph.h"
#include "models/kinds.h"
#include "models/text_model.h"
#include "teach/report/chart.h"
#include "teach/report/maps.h"
#include "tensor/memory.h"
#include "tensor/version.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- parts, which the script turns into tabs ---- */

static const char script[] = {
#include "tabs.js.inc"
    0};

void report_part(struct html *html, const char *name)
{
    html_print(html, "</section>\n<section class=\"part\" data-name=\"%s\" aria-label=\"%s\">\n",
               name, name);
}

/* A text that the report took by itself, or that the model wrote, may be too long to be drawn. */
static bool add_maps(struct html *html, const struct report *r)
{
    const sb_example_attention *at = subject_attention(r->subject, NULL);
    const bool text = maps_have_room(&at->keys), target = at->self || maps_have_room(&at->queries);
    if ((text && target) || (!text && r->text_given) || (!target && r->target_given))
        return maps_of(html, r->subject, maps_all);
    html_print(
        html,
        "<h2>Attention</h2>\n<p>Not drawn: the text has %lld symbols and its output %lld, "
        "which is too long for a page. <code>softback report MODEL --input TEXT</code> draws "
        "another text, and <code>--target TEXT</code> another output.</p>\n",
        (long long)at->keys.length, (long long)at->queries.length);
    return true;
}

static void add_node(struct html *html, const struct drawn_node *node, int64_t number)
{
    html_row(html, NULL);
    html_cell(html, "%lld", (long long)number);
    html_head(html, "row", node->operation);
    html_cell_text(html, node->shape.text);
    html_add(html, "<td>");
    for (int i = 0; i < node->inputs; i++)
        html_print(html, "%s%lld", i > 0 ? ", " : "", (long long)node->from[i] + 1);
    html_add(html, "</td><td>");
    for (int i = 0; i < node->weights; i++) {
        html_add(html, i > 0 ? ", " : "");
        html_text(html, node->weight[i]);
    }
    html_print(html, node->norm < 0 ? "</td><td></td>" : "</td><td>%.3g</td>", node->norm);
}

/* Its table goes to the text of the drawing. */
static void write_tape(struct drawing *d)
{
    d->in_page = true;
    drawing_svg(d);
    struct html html = {.text = d->text};
    html_add(&html, "</div></details>\n<details class=\"texts\"><summary>The numbers</summary>\n");
    html_table(&html, "", "number;operation;shape;takes;weights;|dy|");
    for (int64_t n = 0; n < d->count; n++)
        add_node(&html, &d->node[n], n + 1);
    html_table_end(&html);
    html_add(&html, "</details>\n");
    d->text = html.text;
}

/* The tape of a text's loss, drawn, and as a table. */
static bool add_tape(struct html *html, const struct subject *subject)
{
    char *text = model_tape(subject, write_tape);
    if (!text)
        return false;
    html_add(html,
             "<h2>The tape</h2>\n<p>The nodes that backward visits, for the loss of this text: "
             "each operation with the norm of the gradient that arrived at its result. Arrows "
             "lead from an operation to those that take its result, and backward goes against "
             "them; wide ones carry large gradients. The pointer shows formulas.</p>\n"
             "<details><summary>The drawing</summary>\n<div class=\"wide tall\">\n");
    html_add(html, text);
    memory_free(text);
    return true;
}

/* ---- details: what a run can be repeated from ---- */

const char *report_setting(const struct checkpoint *c, const sb_description *d, int i,
                           struct field_text *room)
{
    const char *own = sb_description_get(d, setting_name(i));
    *room = setting_get(&c->settings, i);
    return own ? own : room->text;
}

struct time_text report_time(double seconds)
{
    struct time_text time;
    const double most = 1e12; /* a log may say anything */
    const long long s = (long long)(fmin(fmax(seconds, 0), most) + 0.5);
    if (seconds < 60)
        snprintf(time.text, sizeof time.text, "%.1f s", seconds);
    else if (s < 3600)
        snprintf(time.text, sizeof time.text, "%lld:%02lld min", s / 60, s % 60);
    else
        snprintf(time.text, sizeof time.text, "%lld:%02lld:%02lld h", s / 3600, s / 60 % 60,
                 s % 60);
    return time;
}

/* The i-th setting where it is not the default; otherwise NULL. */
static const char *chosen(const struct checkpoint *c, const sb_description *d, int i,
                          struct field_text *room)
{
    const struct settings defaults = settings_default();
    const bool is = setting_is_of(i, c->subject.kind) &&
                    strcmp(setting_get(&c->settings, i).text, setting_get(&defaults, i).text) != 0;
    return is ? report_setting(c, d, i, room) : NULL;
}

/* A word of a command, for a shell. */
static void word(struct html *html, const char *text)
{
    const bool plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "_./:=,+-") == strlen(text);
    html_add(html, plain ? " " : " '");
    for (; *text; text++)
        if (*text == '\'')
            html_add(html, "'\\''");
        else
            buffer_escape(&html->text, text, 1, "&<>\"");
    html_add(html, plain ? "" : "'");
}

/* A flag has no value (NULL). */
static void option(struct html *html, const char *name, const char *value, bool bold)
{
    html_print(html, bold ? " <strong>--%s" : " --%s", name);
    if (value)
        word(html, value);
    html_add(html, bold ? "</strong>" : "");
}

/* A setting that `next` changes is bold, and left out where it becomes 0: its default. */
static void command_settings(struct html *html, const struct checkpoint *c, const sb_description *d,
                             const struct settings *next)
{
    for (int i = 0; setting_name(i); i++) {
        struct field_text room, now = setting_get(next, i);
        const bool changes = strcmp(now.text, setting_get(&c->settings, i).text) != 0;
        const char *value = changes ? now.text : chosen(c, d, i, &room);
        if (value && !(changes && strcmp(value, "0") == 0))
            option(html, setting_name(i), setting_at(i).type == FIELD_FLAG ? NULL : value, changes);
    }
}

bool report_command(struct html *html, const struct report *r, const struct settings *next,
                    bool resumes)
{
    const struct checkpoint *c = r->checkpoint;
    sb_description *d = sb_model_describe(&c->subject);
    if (!d)
        return false;
    html_print(html, "<code>softback train --model %s%s", c->subject.kind->name,
               c->settings.tuning.lora > 0 ? " --from FILE" : "");
    if (c->task[0])
        option(html, "task", c->task, false);
    else
        option(html, "data", r->trained_on ? r->trained_on : "FILE", false);
    if (!c->task[0] && !r->trained_on)
        html_add(html, " [--valid FILE]");
    else if (r->valid)
        option(html, "valid", r->valid, false);
    command_settings(html, c, d, next ? next : &c->settings);
    char *out = memory_format(resumes ? "%s.safetensors" : "%s-2.safetensors", r->name),
         *page = memory_format(resumes ? "%s.html" : "%s-2.html", r->name);
    const bool ok = (out && page) || sb_fail("report: out of memory");
    if (ok && next) {
        option(html, "out", out, false);
        option(html, "report", page, false);
        html_add(html, resumes ? " <strong>--resume</strong>" : "");
    }
    memory_free(out);
    memory_free(page);
    html_add(html, "</code>");
    sb_description_free(d);
    return ok;
}

static void row(struct html *html, const char *name, const char *value)
{
    html_row(html, name);
    html_cell_text(html, value);
}

/* The processor's name, where the system tells it. */
static void row_processor(struct html *html)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256], name[200] = "unknown";
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "model name : %199[^\n]", name) != 1)
        ;
    if (file)
        fclose(file);
    row(html, "processor that made it", name);
}

static void row_hash(struct html *html, const char *name, uint64_t hash)
{
    html_row(html, name);
    html_print(html, "<td>%016llx</td>", (unsigned long long)hash);
}

static bool add_run(struct html *html, const struct report *r)
{
    const struct checkpoint *c = r->checkpoint;
    const double seconds = r->log->seconds;
    char today[32];
    const time_t now = time(NULL);
    strftime(today, sizeof today, "%Y-%m-%d", gmtime(&now));
    html_row(html, "command with these settings");
    html_add(html, "<td>");
    if (!report_command(html, r, NULL, false))
        return false;
    html_add(html, "</td>");
    if (!isnan(seconds))
        row(html, "training took, with its evaluations", report_time(seconds).text);
    if (r->data_hash)
        row_hash(html, "hash of the data", r->data_hash);
    row_hash(html, "fingerprint", c->fingerprint);
    html_row(html, "parameters");
    html_cell_number(html, (double)sb_parameters_size(c->weights));
    row(html, "version of softback", sb_version());
    row(html, "this page is from", today);
    row_processor(html);
    return true;
}

static bool add_details(struct html *html, const struct report *r)
{
    const struct checkpoint *c = r->checkpoint;
    sb_description *d = sb_model_describe(&c->subject);
    if (!d)
        return false;
    html_add(html, "<h2>Details</h2>\n<p>Settings that are not listed have their defaults; "
                   "<code>softback info MODEL</code> prints all.</p>\n<div class=\"texts\">\n");
    html_table(html, "", "name;value");
    const bool ok = add_run(html, r);
    for (int i = 0; setting_name(i); i++) {
        struct field_text room;
        const char *value = chosen(c, d, i, &room);
        if (value)
            row(html, setting_name(i), value);
    }
    html_table_end(html);
    html_add(html, "</div>\n");
    sb_description_free(d);
    return ok;
}

static void add_model(struct html *html, const struct report *r, const struct report_kind *kind)
{
    const struct text_model *model = r->subject->model.self;
    const sb_transformer_options *o = &model->options.transformer;
    html_say(html, "<p>%s with %lld parameters: width %lld, heads %lld, feed-forward %lld",
             kind->title, (long long)sb_parameters_size(r->checkpoint->weights),
             (long long)o->width, (long long)o->heads, (long long)o->feed_forward);
    if (model->encoder)
        html_say(html, ", encoder layers %d", o->encoder_layers);
    if (model->decoder)
        html_say(html, ", decoder layers %d", o->decoder_layers);
    html_say(html, ", %s %lld.</p>\n", kind->outputs, (long long)r->subject->example.choices);
}

/* ---- the page ---- */

static bool add_all(struct html *html, const struct report *r, const struct report_kind *kind,
                    void *found)
{
    bool ok = (!kind->find || kind->find(found, r)) && kind->begin(html, r, found);
    const struct text_model *model = r->subject->model.self;
    const bool quiet =
        model->options.transformer.dropout == 0 && model->options.label_smoothing == 0;
    html_add(html, "<nav id=\"tabs\" aria-label=\"Parts\" hidden></nav>\n<section class=\"part\" "
                   "data-name=\"Curves\" aria-label=\"Curves\">\n");
    chart_controls(html);
    curves_add(html, r->log, r->subject->example.choices,
               quiet ? NULL
                     : "Dropout and label smoothing act in training only, so the held-out loss can "
                       "be below that of training.");
    if (kind->curves)
        kind->curves(html, r);
    chart_note(html);
    if (r->log->diagnoses > 0)
        report_part(html, "Gradients");
    ok = ok && inside_add(html, r->log, r->checkpoint->weights, &r->subject->example,
                          verdict_is_bad(r, kind == &report_classifier));
    report_part(html, "Attention");
    ok = ok && add_maps(html, r) && (!kind->errors || kind->errors(html, r, found));
    report_part(html, "Check and tape");
    ok = ok && check_add(html, r->subject) && add_tape(html, r->subject);
    report_part(html, "Details");
    add_model(html, r, kind);
    ok = ok && add_details(html, r);
    html_add(html, "</section>\n");
    html_script(html, script);
    return ok;
}

char *report_page(const struct report *r, const struct report_kind *kind)
{
    struct html html = {0};
    void *found = memory_new(kind->size + 1);
    html_begin(&html, r->title, drawing_svg_rules);
    const bool ok =
        found ? add_all(&html, r, kind, found) : sb_fail("report: out of memory") != NULL;
    if (found && kind->forget)
        kind->forget(found);
    memory_free(found);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
