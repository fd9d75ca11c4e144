#include "tensor/memory.h"
#include "tests/support/test.h"

CPU_TEST(memory, new_objects_are_zero_and_aligned)
{
    for (size_t bytes = 0; bytes < 300; bytes += 13) {
        char *object = memory_new(bytes);
        cr_assert(object && (uintptr_t)object % 16 == 0);
        for (size_t i = 0; i < bytes; i++)
            cr_expect(object[i] == 0);
        memset(object, 1, bytes);
        memory_free(object);
    }
    memory_free(NULL);
    cr_expect(!memory_new(SIZE_MAX) && !memory_new(SIZE_MAX - 16));
}

CPU_TEST(memory, a_resized_object_keeps_its_bytes_and_new_ones_are_zero)
{
    char *object = memory_resize(NULL, 3);
    memcpy(object, "abc", 3);
    object = memory_resize(object, 200);
    cr_expect(memcmp(object, "abc", 3) == 0);
    for (int i = 3; i < 200; i++)
        cr_expect(object[i] == 0);
    pool_fail_after(0, false);
    cr_expect(!memory_resize(object, 400) && object[0] == 'a', "a failure does not change it");
    pool_fail_after(-1, false);
    object = memory_resize(object, 2);
    cr_expect(memcmp(object, "ab", 2) == 0);
    memory_free(object);
}

CPU_TEST(memory, an_array_grows)
{
    int64_t *array = NULL, room = 0;
    for (int64_t i = 0; i < 1000; i++) {
        cr_assert(memory_room(&array, i, &room, sizeof *array) && room > i);
        array[i] = i;
    }
    for (int64_t i = 0; i < 1000; i++)
        cr_expect(array[i] == i);
    int64_t before = room;
    pool_fail_after(0, false);
    cr_expect(!memory_room(&array, room, &room, sizeof *array));
    pool_fail_after(-1, false);
    cr_expect(room == before && array[999] == 999);
    memory_free(array);
}

CPU_TEST(memory, texts_are_copied_and_formatted)
{
    char *copy = memory_text("copy"), *part = memory_text_part("partial", 4);
    char *made = memory_format("%d of %s, %0300d", 3, "four", 7);
    cr_expect(strcmp(copy, "copy") == 0 && strcmp(part, "part") == 0);
    cr_expect(strncmp(made, "3 of four, 000", 14) == 0 && strlen(made) == 311);
    memory_free(copy);
    memory_free(part);
    memory_free(made);
}
