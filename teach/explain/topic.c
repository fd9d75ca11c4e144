#include "teach/explain/topic.h"
#include "autograd/gradcheck.h"
#include "ops/elementwise.h"
#include "ops/example.h"
#include "tensor/buffer.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <stdio.h>
#include <string.h>

/* ---- operations: what ops.h says of one, its loops, and a check of its gradient ---- */

/* The text of ops.h, and that of ops/plain, file after file with a line "@softmax.c" above it;
   teach/meson.build makes the arrays when the library is built. */
static const unsigned char menu[] = {
#include "menu.inc"
    0};
static const unsigned char pages[] = {
#include "pages.inc"
    0};

/* The start of the next line. */
static const char *line_after(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* Whether a line declares sb_<name>. */
static bool declares(const char *line, const char *name)
{
    static const char *const types[] = {"SB_API sb_tensor *sb_", "SB_API bool sb_"};
    for (int i = 0; i < 2; i++)
        if (begins(line, types[i]) && begins(line + strlen(types[i]), name) &&
            line[strlen(types[i]) + strlen(name)] == '(')
            return true;
    return false;
}

/* The line that declares an operation, and the block above it; NULL when there is none. */
static const char *find(const char *name, const char **block)
{
    for (const char *line = (const char *)menu; *line; line = line_after(line)) {
        if (begins(line, "/*\n"))
            *block = line_after(line);
        if (declares(line, name))
            return line;
    }
    return NULL;
}

const char *operation_name(const void *unused, int i)
{
    (void)unused;
    const struct example *example = example_at(i);
    return example ? example->name : NULL;
}

const char *operation_comment(const char *name)
{
    const char *block = NULL;
    return find(name, &block) ? block : NULL;
}

/* Appends the line, its first `skip` bytes left out. */
static void add_line(struct buffer *text, const char *line, size_t skip)
{
    size_t size = strcspn(line, "\n");
    skip = skip < size ? skip : size;
    buffer_add(text, line + skip, size - skip);
    buffer_add_text(text, "\n");
}

/* A declaration without SB_API, broken behind commas so that lines fit the page. */
static void add_declaration(struct buffer *text, const char *line)
{
    const size_t end = strcspn(line, ";") + 1;
    size_t column = 0;
    for (size_t at = strlen("SB_API "); at < end;) {
        size_t n = strcspn(line + at, ",;") + 1;
        if (column > 0 && column + 1 + n > PAGE_WIDTH) {
            buffer_add_text(text, "\n    ");
            column = 4;
        } else if (column > 0) {
            buffer_add_text(text, " ");
            column++;
        }
        buffer_add(text, line + at, n);
        column += n;
        at += n;
        at += strspn(line + at, " \n");
    }
    buffer_add_text(text, "\n");
}

/* The file of ops/plain that computes an operation, from its line "@..." on; NULL where it has no
   kernels. */
static const char *plain_file(const char *name)
{
    const struct operation *operation;
    char header[64];
    header[0] = '\0';
    for (int i = 0; (operation = operation_at(i)); i++)
        for (int k = 0; k < operation->count && operation->rows; k++)
            if (strcmp(operation->examples[k].name, name) == 0)
                snprintf(header, sizeof header, "@%s.c\n", operation->name);
    for (const char *line = (const char *)pages; header[0] && *line; line = line_after(line))
        if (begins(line, header))
            return line;
    return NULL;
}

/* Its line of the table of elementwise functions, which its loop is written with. */
static void add_function(struct buffer *text, const char *name)
{
#define FORMULA(NAME, name, y, dx) {#name, "\n    y: " #y "\n    dx: " #dx "\n"},
    static const struct {
        const char *name, *formula;
    } functions[] = {ELEMENTWISE_TABLE(FORMULA)};
#undef FORMULA
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            buffer_add_text(text, functions[i].formula);
}

/* Its loops, without what the file includes. */
static void add_loops(struct buffer *text, const char *name, const char *line)
{
    bool begun = false;
    buffer_add_text(text, "\nops/plain/");
    add_line(text, line, strlen("@"));
    add_function(text, name);
    buffer_add_text(text, "\n");
    for (line = line_after(line); *line && *line != '@'; line = line_after(line)) {
        begun |= !begins(line, "#include") && *line != '\n';
        if (begun && !begins(line, "#include"))
            add_line(text, line, 0);
    }
}

/* The comment without its stars, then the declaration, and the loops or where they are. */
static void write_block(struct page *page, const char *name, bool code)
{
    struct buffer text = {0};
    const char *block = NULL, *declaration = find(name, &block), *plain = plain_file(name);
    for (; !begins(block, " */"); block = line_after(block))
        add_line(&text, block, strlen(" * "));
    buffer_add_text(&text, "\n");
    add_declaration(&text, declaration);
    if (plain && code) {
        add_loops(&text, name, plain);
    } else if (plain) {
        buffer_add_text(&text, "\nLoops     --code prints ops/plain/");
        add_line(&text, plain, strlen("@"));
    }
    char *lines = buffer_take(&text);
    if (lines)
        page_lines(page, lines);
    else
        page_need(page, sb_fail("explain: out of memory"));
    memory_free(lines);
}

/* Checks an example; adds how many elements it has, 0 when there is nothing to differentiate. */
static bool check_example(const struct example *example, const char *shapes, long long *elements)
{
    sb_tensor *x[EXAMPLE_INPUTS];
    int n = example_inputs(shapes, SB_F64, 7, x);
    bool ok = n >= 0, wanted = false;
    for (int i = 0; i < n; i++)
        if (x[i]->requires_grad) {
            wanted = true;
            *elements += sb_tensor_size(x[i]);
        }
    sb_random random = sb_random_new(7, SB_STREAM_USER);
    const sb_gradcheck_options options = {.random = &random};
    if (wanted)
        ok = sb_gradcheck(example->run, NULL, x, n, &options, NULL);
    for (int i = 0; i < n; i++)
        sb_tensor_release(x[i]);
    return ok;
}

static void write_check(struct page *page, const char *name)
{
    const struct example *example;
    long long elements = 0;
    int shapes = 0;
    for (int i = 0; (example = example_at(i)); i++)
        for (int s = 0; strcmp(example->name, name) == 0 && s < EXAMPLE_SHAPES; s++) {
            const long long before = elements;
            if (example->shapes[s] && !check_example(example, example->shapes[s], &elements))
                page_text(page, "The gradient is wrong at %s: %s", example->shapes[s], sb_error());
            shapes += elements > before;
        }
    const bool differentiable = strcmp(name, "argmax") != 0 && strcmp(name, "detach") != 0;
    if (elements > 0 && differentiable)
        page_text(page,
                  "Checked now: backward against central differences in float64, within 1e-6, for "
                  "%lld elements of inputs of %d shapes.",
                  elements, shapes);
    else
        page_text(page, "No gradient flows through it.");
}

/* ---- topics ---- */

/* In the order of the lessons, and so of a first reading. Portable builds have no dual numbers, and
   so no Hessians. */
static const struct topic *const topics[] = {
    &topic_softmax,    &topic_wrong_gradient, &topic_gradcheck,      &topic_cross_entropy,
    &topic_saturation, &topic_scaling,        &topic_saturated_rows, &topic_mask,
    &topic_attention,  &topic_flash,          &topic_tape,           &topic_positions,
    &topic_layer_norm,
#ifndef SOFTBACK_PORTABLE
    &topic_hessian,
#endif
    &topic_claims};

enum { TOPICS = sizeof topics / sizeof topics[0] };

const struct topic *topic_at(int i)
{
    return i < TOPICS ? topics[i] : NULL;
}

const struct topic *topic_named(const char *name)
{
    for (int i = 0; i < TOPICS; i++)
        if (strcmp(topics[i]->name, name) == 0)
            return topics[i];
    return NULL;
}

struct page *explain_page(const char *name, const struct explain_options *options)
{
    const struct topic *topic = topic_named(name);
    struct page *page = page_new(name);
    if (!page)
        return NULL;
    if (topic)
        topic->write(page, options);
    else
        page_title(page, options->code
                             ? "its documentation in ops.h, its loops, and a gradient check"
                             : "its documentation in ops.h, and a gradient check");
    if (topic && !(topic->takes & TAKES_REFERENCE))
        return page;
    if (!topic || options->reference || options->code) {
        write_block(page, name, options->code);
        write_check(page, name);
    } else {
        page_text(page, "--reference adds its documentation in ops.h, with all options, and a "
                        "gradient check; --code its C as well.");
    }
    return page;
}

struct numbers list_or(const struct numbers *given, int count, const double own[])
{
    struct numbers list = {.count = count};
    for (int i = 0; i < count; i++)
        list.value[i] = own[i];
    return given->count > 0 ? *given : list;
}

bool check_count(const char *option, const struct numbers *list, int n, const char *as)
{
    if (list->count == 0 || list->count == n)
        return true;
    return sb_fail("--%s: there are %d numbers, but %d %s", option, list->count, n, as);
}
