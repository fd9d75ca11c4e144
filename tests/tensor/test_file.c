#include "tensor/file.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

CPU_TEST(file, text_gives_all_bytes_and_a_nul)
{
    const char *path = test_temporary("a.txt");
    size_t size;
    put(path, "");
    char *text = file_text("test", path, 0, &size);
    cr_assert(text, "%s", sb_error());
    cr_expect(size == 0 && text[0] == '\0');
    memory_free(text);
    cr_assert(file_save("test", path, "a\0b\n", 4));
    text = file_text("test", path, 4, &size);
    cr_assert(text, "%s", sb_error());
    cr_expect(size == 4 && memcmp(text, "a\0b\n", 5) == 0);
    memory_free(text);
}

CPU_TEST(file, text_larger_than_the_limit_is_refused)
{
    const char *path = test_temporary("a.txt");
    size_t size;
    put(path, "12345");
    cr_expect(!file_text("test", path, 4, &size));
    EXPECT_ERROR("a.txt\" is larger than 4 bytes, the most that is read");
    cr_expect(!file_text("test", "/dev/zero", 100000, &size));
    EXPECT_ERROR("\"/dev/zero\" is larger than 100000 bytes");
}

CPU_TEST(file, text_is_read_from_a_pipe_as_well)
{
    int end[2];
    cr_assert(pipe(end) == 0);
    char path[40];
    snprintf(path, sizeof path, "/dev/fd/%d", end[0]);
    char *text = malloc(20001);
    memset(text, 'x', 20000);
    text[20000] = '\0';
    cr_assert(write(end[1], text, 20000) == 20000);
    close(end[1]);
    cr_expect(holds(path, text), "%s", sb_error());
    close(end[0]);
    free(text);
}

CPU_TEST(file, a_file_that_cannot_be_opened_is_named_with_the_reason)
{
    size_t size;
    cr_expect(!file_text("test", test_temporary("none.txt"), 10, &size));
    EXPECT_ERROR("test: cannot open \"");
    EXPECT_ERROR("/none.txt\": No such file or directory");
    cr_expect(!file_open("test", "/proc/none"));
    EXPECT_ERROR("test: cannot open \"/proc/none\": No such file or directory");
    cr_expect(!file_text("test", "/", 10, &size));
    EXPECT_ERROR("test: cannot read \"/\": Is a directory");
    cr_expect(!file_open("test", NULL) && !file_text("test", NULL, 1, &size));
    EXPECT_ERROR("test: path is NULL");
}

CPU_TEST(file, only_regular_files_are_opened_for_reading_in_ranges)
{
    cr_expect(!file_open("test", "/"));
    EXPECT_ERROR("test: \"/\" is a folder");
    cr_expect(!file_open("test", "/dev/zero"));
    EXPECT_ERROR("test: \"/dev/zero\" is not a regular file");
    const char *path = test_temporary("pipe");
    cr_assert(mkfifo(path, 0600) == 0);
    cr_expect(!file_open("test", path)); /* and does not wait for a writer */
    EXPECT_ERROR("pipe\" is not a regular file");
}

CPU_TEST(file, ranges_are_read_exactly_and_not_beyond_the_end)
{
    const char *path = test_temporary("a.txt");
    char bytes[4] = "";
    put(path, "0123456789");
    struct file *file = file_open("test", path);
    cr_assert(file, "%s", sb_error());
    cr_expect(file_size(file) == 10);
    cr_expect(file_read(file, 7, bytes, 3) && memcmp(bytes, "789", 3) == 0);
    cr_expect(file_read(file, 10, bytes, 0));
    cr_expect(!file_read(file, 8, bytes, 3));
    EXPECT_ERROR("a.txt\" ends at byte 10, within the 3 bytes wanted from 8 on");
    cr_assert(truncate(path, 5) == 0);
    cr_expect(!file_read(file, 3, bytes, 3));
    EXPECT_ERROR("ends at byte 5");
    file_close(file);
}
