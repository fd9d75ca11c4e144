#include "teach/report/details.h"
#include "models/kinds.h"
#include "tensor/version.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *details_setting(const struct checkpoint *c, const sb_description *d, int i,
                            struct field_text *room)
{
    const char *own = sb_description_get(d, setting_name(i));
    *room = setting_get(&c->settings, i);
    return own ? own : room->text;
}

struct time_text details_time(double seconds)
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

/* The command with these settings: those that differ from their defaults. */
static void add_command(struct html *html, const struct checkpoint *c, const sb_description *d)
{
    const struct settings defaults = settings_default();
    html_add(html, "softback train ");
    html_print(html, "--model %s ", c->subject.kind->name);
    html_add(html, c->task[0] ? "--task " : "--data FILE");
    html_text(html, c->task);
    for (int i = 0; setting_name(i); i++) {
        struct field_text room;
        const char *value = details_setting(c, d, i, &room);
        if (!model_has_setting(c->subject.kind, setting_name(i)) ||
            strcmp(value, setting_get(&defaults, i).text) == 0)
            continue;
        html_print(html, " --%s ", setting_name(i));
        html_text(html, value);
    }
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

static void add_run(struct html *html, const struct checkpoint *c, const sb_description *d,
                    uint64_t data_hash, double seconds)
{
    char today[32];
    const time_t now = time(NULL);
    strftime(today, sizeof today, "%Y-%m-%d", gmtime(&now));
    html_row(html, "command with these settings");
    html_add(html, "<td><code>");
    add_command(html, c, d);
    html_add(html, "</code></td>");
    if (!isnan(seconds))
        row(html, "training took, with its evaluations", details_time(seconds).text);
    if (data_hash)
        row_hash(html, "hash of the data", data_hash);
    row_hash(html, "fingerprint", c->fingerprint);
    html_row(html, "parameters");
    html_cell_number(html, (double)sb_parameters_size(c->weights));
    row(html, "version of softback", sb_version());
    row(html, "this page is from", today);
    row_processor(html);
}

bool details_add(struct html *html, const struct checkpoint *c, uint64_t data_hash, double seconds)
{
    sb_description *d = sb_model_describe(&c->subject);
    if (!d)
        return false;
    html_add(html, "<h2>Details</h2>\n<div class=\"texts\">\n");
    html_table(html, "", "name;value");
    add_run(html, c, d, data_hash, seconds);
    for (int i = 0; setting_name(i); i++) {
        struct field_text room;
        if (model_has_setting(c->subject.kind, setting_name(i)))
            row(html, setting_name(i), details_setting(c, d, i, &room));
    }
    html_table_end(html);
    html_add(html, "</div>\n");
    sb_description_free(d);
    return true;
}
