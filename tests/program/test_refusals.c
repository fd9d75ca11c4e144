/*
 * What the program refuses, as a user sees it. A file golden/refusals/NAME.txt has commands for the
 * shell, "$ softback train --task copy", each followed by all that it prints and by its exit code
 * unless that is 0: "[2]". The commands of a file run one after the other in one folder; blank
 * lines and those that begin with "#" stand between them. FINGERPRINT is one, whose digits depend
 * on the processor. SOFTBACK_GOLDEN=write writes what is printed now.
 */
#include "tests/support/program.h"
#include <stdio.h>

static bool is_between(const char *line)
{
    return line[0] == '\n' || line[0] == '#';
}

/* The line behind a command's output. */
static const char *output_end(const char *line)
{
    while (*line && !is_between(line) && strncmp(line, "$ ", 2) != 0)
        line += strcspn(line, "\n") + 1;
    return line;
}

/* Writes FINGERPRINT over each word of 16 hexadecimal digits. */
static void hide_fingerprints(char *text)
{
    static const char word[] = "FINGERPRINT";
    for (char *at = text; (at = strchr(at, ' ')) != NULL;)
        if (strspn(++at, "0123456789abcdef") == 16) {
            memcpy(at, word, sizeof word - 1);
            memmove(at + sizeof word - 1, at + 16, strlen(at + 16) + 1);
        }
}

/* "what is printed\n[1]\n" */
static char *outcome_text(const char *command)
{
    struct outcome o = program_shell(command);
    char *text = KEPT(calloc(strlen(o.out) + strlen(o.err) + 32, 1));
    strcat(strcat(text, o.out), o.err);
    cr_assert(!strstr(text, "\n\n"), "a blank line would end it: %s", text);
    if (o.code != 0)
        sprintf(text + strlen(text), "[%d]\n", o.code);
    hide_fingerprints(text);
    return text;
}

/* Runs the command of a line, and returns the line behind its output. */
static const char *run_line(const char *line, FILE *written)
{
    char command[2000];
    const char *output = line + strcspn(line, "\n") + 1, *end = output_end(output);
    snprintf(command, sizeof command, "%.*s", (int)(output - 1 - (line + 2)), line + 2);
    char *got = outcome_text(command);
    if (written)
        fprintf(written, "$ %s\n%s", command, got);
    else
        cr_expect(strlen(got) == (size_t)(end - output) && strncmp(got, output, strlen(got)) == 0,
                  "%s\nexpected:\n%.*sgot:\n%s", command, (int)(end - output), output, got);
    return end;
}

static char *read_all(const char *path)
{
    enum { ROOM = 1 << 18 };
    FILE *file = fopen(path, "r");
    char *text = KEPT(calloc(ROOM, 1));
    cr_assert(file && fread(text, 1, ROOM, file) < ROOM, "%s", path);
    fclose(file);
    return text;
}

static void expect_refusals(const char *name)
{
    const char *mode = getenv("SOFTBACK_GOLDEN");
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", test_path("golden/refusals"), name);
    char *text = read_all(path);
    FILE *written = mode && strcmp(mode, "write") == 0 ? fopen(path, "w") : NULL;
    for (const char *line = text; *line;) {
        const char *end = line + strcspn(line, "\n") + 1;
        if (written && is_between(line))
            fwrite(line, 1, (size_t)(end - line), written);
        line = is_between(line) ? end : run_line(line, written);
    }
    if (written)
        fclose(written);
}

/* A test of the file golden/refusals/FILE.txt. */
#define REFUSALS(name, file)                                                                       \
    CPU_TEST(refusals, name)                                                                       \
    {                                                                                              \
        expect_refusals(file);                                                                     \
    }
REFUSALS(of_unknown_words_and_options_that_do_not_fit, "options")
REFUSALS(of_files_that_would_be_overwritten, "files")
REFUSALS(of_two_outputs_in_one_file_and_outputs_over_inputs, "outputs")
REFUSALS(of_data_and_settings, "training")
REFUSALS(of_models_that_a_command_cannot_use, "models")
REFUSALS(of_reports, "reports")

CPU_TEST(refusals, of_explanations)
{
    expect_text(program_run("explain 0").err, "there is no topic \"0\"");
    expect_refusals("explain");
}
