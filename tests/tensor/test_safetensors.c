#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/safetensors_parts.h"
#include "tests/support/test.h"
#include "tests/support/trace.h"
#include <stdio.h>
#include <unistd.h>

#define UNUSUAL_NAME "\xC3\xA9 \xE2\x82\xAC\xF0\x9F\x98\x80 \"quoted\" \\ \t\x01"
#define METADATA_KEY                                                                               \
    "gr\xC3\xB6\xC3\x9F"                                                                           \
    "e \xF0\x9F\x98\x80"
#define METADATA_TEXT "line\nline \"two\" \\ \x1f"

/* ---- Files of the reference library, and files for it. ---- */

static void expect_values(const sb_safetensors *file, const char *name, sb_dtype dtype,
                          const char *shape, const double *values)
{
    sb_tensor *t = KEPT(sb_safetensors_tensor(file, name));
    cr_assert(t, "%s", sb_error());
    cr_expect(t->dtype == dtype, "%s is %s", name, sb_dtype_name(t->dtype));
    cr_expect(strcmp(tensor_shape(t).text, shape) == 0, "%s has %s", name, tensor_shape(t).text);
    for (int64_t i = 0; i < tensor_size(t); i++) {
        double value = sb_tensor_get(t, i);
        cr_expect((isnan(value) && isnan(values[i])) ||
                      (value == values[i] && signbit(value) == signbit(values[i])),
                  "%s[%d] is %g, not %g", name, (int)i, value, values[i]);
    }
}

#define VALUES(...)                                                                                \
    (const double[])                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The values of make_safetensors.py. */
static void expect_own(const sb_safetensors *file)
{
    expect_values(file, "f64.matrix", SB_F64, "(2, 3)",
                  VALUES(-0.375, -0.25, -0.125, 0, 0.125, 0.25));
    expect_values(file, "f64.scalar", SB_F64, "()", VALUES(3.141592653589793));
    expect_values(file, "f32.vector", SB_F32, "(7)",
                  VALUES(0.0, -0.0, 0x1p-149, 0x1.fffffep127, INFINITY, -INFINITY, NAN));
    expect_values(file, "f32.empty", SB_F32, "(2, 0, 3)", NULL);
    expect_values(file, "f32.rank6", SB_F32, "(1, 2, 1, 2, 1, 2)",
                  VALUES(-3, -2, -1, 0, 1, 2, 3, 4));
    expect_values(file, "i32.vector", SB_I32, "(4)", VALUES(-2147483648.0, -1, 0, 2147483647));
    expect_values(file, "bool.matrix", SB_BOOL, "(1, 3)", VALUES(1, 0, 1));
    expect_values(file, UNUSUAL_NAME, SB_F32, "(1)", VALUES(-3));
    const char *text = sb_safetensors_metadata(file, METADATA_KEY);
    cr_expect(text && strcmp(text, METADATA_TEXT) == 0, "%s", text);
    cr_expect(!sb_safetensors_metadata(file, "no such key"));
}

TEST(safetensors, a_file_of_the_reference_library_is_read)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/python.safetensors")));
    cr_assert(file, "%s", sb_error());
    cr_expect(sb_safetensors_count(file) == 19);
    expect_own(file);
    expect_values(file, "f16", SB_F32, "(8)",
                  VALUES(0.0, -0.0, 0x1p-24, 1023 * 0x1p-24, 1.5, -65504, INFINITY, NAN));
    expect_values(file, "i64", SB_I32, "(2)", VALUES(-2147483648.0, 2147483647));
    expect_values(file, "u64", SB_I32, "(2)", VALUES(0, 2147483647));
    expect_values(file, "u32", SB_I32, "(2)", VALUES(0, 2147483647));
    expect_values(file, "i16", SB_I32, "(2)", VALUES(-32768, 32767));
    expect_values(file, "u16", SB_I32, "(2)", VALUES(0, 65535));
    expect_values(file, "i8", SB_I32, "(2)", VALUES(-128, 127));
    expect_values(file, "u8", SB_I32, "(2)", VALUES(0, 255));
}

TEST(safetensors, integers_beyond_i32_are_refused_by_index_and_value)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/python.safetensors")));
    cr_assert(file, "%s", sb_error());
    cr_expect(!sb_safetensors_tensor(file, "i64.large"));
    EXPECT_ERROR("tensor \"i64.large\": element 2 is -3000000000, which i32 cannot represent");
    cr_expect(!sb_safetensors_tensor(file, "u64.large"));
    EXPECT_ERROR("tensor \"u64.large\": element 0 is 18446744073709551615, which i32 cannot");
    cr_expect(!sb_safetensors_tensor(file, "u32.large"));
    EXPECT_ERROR("tensor \"u32.large\": element 0 is 2147483648, which i32 cannot represent");
}

TEST(safetensors, bf16_is_widened_and_8_bit_floats_are_listed_but_not_read)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/bf16.safetensors")));
    cr_assert(file, "%s", sb_error());
    expect_values(file, "bf16", SB_F32, "(3)", VALUES(1.5, -2, INFINITY));
    cr_expect(strcmp(sb_safetensors_dtype(file, 1), "F8_E4M3") == 0);
    cr_expect(!sb_safetensors_tensor(file, "f8"));
    EXPECT_ERROR("bf16.safetensors\": tensor \"f8\": elements of F8_E4M3 cannot be read");
}

/* Every binary16, against its definition: (-1)^s 2^(e - 15) (1 + f / 1024), or f 2^-24 for e = 0.
 */
CPU_TEST(safetensors, every_f16_is_widened_exactly)
{
    const struct codec *codec = codec_find("F16");
    for (int bits = 0; bits < 65536; bits++) {
        unsigned char stored[2] = {(unsigned char)bits, (unsigned char)(bits >> 8)};
        int exponent = bits >> 10 & 31, fraction = bits & 1023;
        double expected =
            exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31)
            expected = fraction ? NAN : INFINITY;
        float value;
        cr_assert(codec->read(1, stored, &value) == -1);
        cr_assert(isnan(expected) ? isnan(value) : fabs(value) == expected, "%04x: %g", bits,
                  value);
        cr_assert(!signbit(value) == !(bits >> 15), "%04x", bits);
    }
}

/* The tensors of make_safetensors.py, in another order. The caller releases them. */
enum { OWN = 8 };

static void make_own(sb_named_tensor item[OWN])
{
    const float vector[] = {0.0f, -0.0f, 0x1p-149f, 0x1.fffffep127f, INFINITY, -INFINITY, NAN};
    const double matrix[] = {-0.375, -0.25, -0.125, 0, 0.125, 0.25};
    const double rank6[] = {-3, -2, -1, 0, 1, 2, 3, 4};
    item[0] = (sb_named_tensor){"bool.matrix", sb_tensor_from(SB_BOOL, SB_SHAPE(1, 3), "\1\0\1")};
    item[1] = (sb_named_tensor){"f32.vector", sb_tensor_from(SB_F32, SB_SHAPE(7), vector)};
    item[2] = (sb_named_tensor){UNUSUAL_NAME, sb_tensor_full(SB_F32, SB_SHAPE(1), -3)};
    item[3] = (sb_named_tensor){"f64.scalar", sb_tensor_scalar(SB_F64, 3.141592653589793)};
    item[4] = (sb_named_tensor){"f32.rank6",
                                sb_tensor_from_doubles(SB_F32, SB_SHAPE(1, 2, 1, 2, 1, 2), rank6)};
    item[5] = (sb_named_tensor){"f64.matrix", sb_tensor_from(SB_F64, SB_SHAPE(2, 3), matrix)};
    item[6] = (sb_named_tensor){"f32.empty", sb_tensor_zeros(SB_F32, SB_SHAPE(2, 0, 3))};
    item[7] =
        (sb_named_tensor){"i32.vector", sb_tensor_from(SB_I32, SB_SHAPE(4),
                                                       (int32_t[]){INT32_MIN, -1, 0, INT32_MAX})};
}

static void release(int n, const sb_named_tensor *item)
{
    for (int i = 0; i < n; i++)
        sb_tensor_release((sb_tensor *)item[i].tensor);
}

static bool same_bytes(const char *a, const char *b)
{
    size_t size_a = 0, size_b = 0;
    char *bytes_a = file_text("test", a, 1 << 20, &size_a);
    char *bytes_b = file_text("test", b, 1 << 20, &size_b);
    bool same = bytes_a && bytes_b && size_a == size_b && memcmp(bytes_a, bytes_b, size_a) == 0;
    memory_free(bytes_a);
    memory_free(bytes_b);
    return same;
}

static const char *const one_pair[][2] = {{METADATA_KEY, METADATA_TEXT}};

TEST(safetensors, written_files_have_the_bytes_of_the_reference_library)
{
    const char *path = test_temporary("own.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    cr_assert(sb_safetensors_save(path, OWN, item, 1, one_pair), "%s", sb_error());
    cr_expect(same_bytes(path, test_path("golden/writer.safetensors")));
    release(OWN, item);
}

TEST(safetensors, written_files_are_read_back)
{
    const char *path = test_temporary("own.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    cr_assert(sb_safetensors_save(path, OWN, item, 1, one_pair), "%s", sb_error());
    release(OWN, item);
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_assert(file, "%s", sb_error());
    cr_expect(sb_safetensors_count(file) == OWN && sb_safetensors_metadata_count(file) == 1);
    expect_own(file);
}

/* The file that softback wrote, read by the reference library if it is installed. */
TEST(safetensors, the_reference_library_reads_written_files)
{
    const char *python = getenv("PYTHON") ? getenv("PYTHON") : "python3";
    char command[2048];
    snprintf(command, sizeof command, "%s -c 'import safetensors, numpy' >/dev/null 2>&1", python);
    if (!test_long() || system(command) != 0)
        cr_skip_test("a long test, which needs Python with safetensors and numpy");
    const char *path = test_temporary("own.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    cr_assert(sb_safetensors_save(path, OWN, item, 1, one_pair), "%s", sb_error());
    release(OWN, item);
    snprintf(command, sizeof command,
             "%s -c '\n"
             "import sys, numpy as np\n"
             "from safetensors import safe_open\n"
             "a, b = (safe_open(p, \"np\") for p in sys.argv[1:])\n"
             "assert sorted(a.keys()) == sorted(b.keys()) and a.metadata() == b.metadata()\n"
             "for k in a.keys():\n"
             "    x, y = a.get_tensor(k), b.get_tensor(k)\n"
             "    assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()\n"
             "' '%s' '%s'",
             python, path, test_path("golden/writer.safetensors"));
    cr_expect(system(command) == 0);
}

/* ---- Names, metadata and reading. ---- */

CPU_TEST(safetensors, tensors_and_metadata_are_listed_in_order)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/bf16.safetensors")));
    cr_assert(file, "%s", sb_error());
    cr_expect(sb_safetensors_count(file) == 2);
    cr_expect(strcmp(sb_safetensors_name(file, 0), "bf16") == 0);
    cr_expect(strcmp(sb_safetensors_name(file, 1), "f8") == 0);
    cr_expect(strcmp(sb_safetensors_dtype(file, 0), "BF16") == 0);
    cr_expect(sb_safetensors_rank(file, 0) == 1 && sb_safetensors_shape(file, 0)[0] == 3);
    cr_expect(sb_safetensors_find(file, "f8") == 1 && sb_safetensors_find(file, "f") == -1);
    cr_expect(sb_safetensors_metadata_count(file) == 2);
    const char *text = NULL;
    cr_expect(strcmp(sb_safetensors_metadata_pair(file, 0, &text), "") == 0);
    cr_expect(strcmp(text, "an empty key") == 0);
    cr_expect(strcmp(sb_safetensors_metadata_pair(file, 1, &text), "empty") == 0 && !text[0]);
    cr_expect(strcmp(sb_safetensors_metadata(file, "empty"), "") == 0);
    cr_expect(!sb_safetensors_name(file, 2));
    EXPECT_ERROR("safetensors_name: 2 is not in 0..1");
    cr_expect(!sb_safetensors_dtype(file, -1) && !sb_safetensors_shape(file, 2));
    cr_expect(sb_safetensors_rank(file, 2) == -1);
    EXPECT_ERROR("safetensors_rank: 2 is not in 0..1");
    cr_expect(!sb_safetensors_metadata_pair(file, 2, &text));
    EXPECT_ERROR("safetensors_metadata_pair: 2 is not in 0..1");
}

TEST(safetensors, every_name_is_found_among_many)
{
    enum { MANY = 1000 };
    const char *path = test_temporary("many.safetensors");
    sb_named_tensor item[MANY];
    char name[MANY][16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "x%d", i * 7 % MANY);
        item[i] = (sb_named_tensor){name[i], sb_tensor_scalar(SB_I32, i * 7 % MANY)};
    }
    cr_assert(sb_safetensors_save(path, MANY, item, 0, NULL), "%s", sb_error());
    release(MANY, item);
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_assert(file, "%s", sb_error());
    for (int i = 0; i < MANY; i++) {
        sb_tensor *t = KEPT(sb_safetensors_tensor(file, name[i]));
        cr_assert(t && sb_tensor_value(t) == i * 7 % MANY, "%s", name[i]);
    }
}

CPU_TEST(safetensors, a_file_without_tensors_is_valid)
{
    const char *path = test_temporary("none.safetensors");
    cr_assert(sb_safetensors_save(path, 0, NULL, 0, NULL), "%s", sb_error());
    size_t size;
    char *bytes = file_text("test", path, 100, &size);
    cr_expect(size == 16 && memcmp(bytes, "\x08\0\0\0\0\0\0\0{}      ", 16) == 0);
    memory_free(bytes);
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_assert(file, "%s", sb_error());
    cr_expect(sb_safetensors_count(file) == 0 && sb_safetensors_metadata_count(file) == 0);
    cr_expect(!sb_safetensors_tensor(file, "x"));
    EXPECT_ERROR("none.safetensors\": has no tensor \"x\"");
}

/* More elements than pass through the buffers at once, and a view that begins inside. */
TEST(safetensors, long_tensors_and_views_survive)
{
    const char *path = test_temporary("long.safetensors");
    enum { n = 3 * CODEC_ELEMENTS + 17 };
    static unsigned char yes[n];
    sb_tensor *x = KEPT(test_leaf(SB_F32, 5, SB_SHAPE(n)));
    sb_tensor *view = KEPT(tensor_view("test", x, 10, SB_SHAPE(2, 4000)));
    memset(yes, 1, n - 1);
    yes[n - 1] = 7; /* any nonzero byte of a bool becomes 1 in the file */
    sb_tensor *truth = KEPT(sb_tensor_from(SB_BOOL, SB_SHAPE(n), yes));
    sb_named_tensor item[] = {{"x", x}, {"view", view}, {"truth", truth}};
    cr_assert(sb_safetensors_save(path, 3, item, 0, NULL), "%s", sb_error());
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_assert(file, "%s", sb_error());
    sb_tensor *y = KEPT(sb_safetensors_tensor(file, "x")),
              *w = KEPT(sb_safetensors_tensor(file, "view"));
    sb_tensor *z = KEPT(sb_safetensors_tensor(file, "truth"));
    cr_expect(test_relative(y, x) == 0 && test_relative(w, view) == 0);
    cr_expect(z && sb_tensor_get(z, n - 1) == 1);
}

TEST(safetensors, a_tensor_can_be_read_in_place_if_dtype_and_shape_fit)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/writer.safetensors")));
    sb_tensor *fits = KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(2, 3)));
    sb_tensor *narrow = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3)));
    sb_tensor *turned = KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(3, 2)));
    cr_assert(file && sb_safetensors_read(file, "f64.matrix", fits), "%s", sb_error());
    cr_expect(sb_tensor_get(fits, 0) == -0.375 && sb_tensor_get(fits, 5) == 0.25);
    cr_expect(!sb_safetensors_read(file, "f64.matrix", narrow));
    EXPECT_ERROR("tensor \"f64.matrix\": is F64 (2, 3), into is f32 (2, 3)");
    cr_expect(!sb_safetensors_read(file, "f64.matrix", turned));
    EXPECT_ERROR("tensor \"f64.matrix\": is F64 (2, 3), into is f64 (3, 2)");
    tensor_free_data(turned);
    cr_expect(!sb_safetensors_read(file, "f64.matrix", turned));
    EXPECT_ERROR("freed by backward");
}

TEST(safetensors, a_file_that_shrinks_after_opening_is_noticed)
{
    const char *path = test_temporary("a.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    cr_assert(sb_safetensors_save(path, OWN, item, 0, NULL), "%s", sb_error());
    release(OWN, item);
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_assert(file && truncate(path, 600) == 0);
    cr_expect(!sb_safetensors_tensor(file, "f64.matrix"));
    EXPECT_ERROR("a.safetensors\" ends at byte 600");
}

TEST(safetensors, invalid_names_tensors_and_metadata_are_not_written)
{
    const char *path = test_temporary("a.safetensors");
    sb_tensor *x = KEPT(sb_tensor_scalar(SB_F32, 1)), *y = KEPT(sb_tensor_scalar(SB_F64, 1)),
              *freed = KEPT(sb_tensor_scalar(SB_F32, 1));
    sb_named_tensor twice[] = {{"x", x}, {"a", x}, {"x", y}};
    sb_named_tensor metadata = {"__metadata__", x},
                    latin = {"gr\xF6\xDF"
                             "e",
                             x},
                    of_freed = {"g", freed};
    static const char *const key_twice[][2] = {{"k", "1"}, {"j", "2"}, {"k", "1"}};
    static const char *const latin_text[][2] = {{"k", "\xFF"}};
    tensor_free_data(freed);
    cr_expect(!sb_safetensors_save(path, 3, twice, 0, NULL));
    EXPECT_ERROR("safetensors_save: two tensors are called \"x\"");
    cr_expect(!sb_safetensors_save(path, 1, &metadata, 0, NULL));
    EXPECT_ERROR("safetensors_save: a tensor cannot be called __metadata__");
    cr_expect(!sb_safetensors_save(path, 1, &latin, 0, NULL));
    EXPECT_ERROR("safetensors_save: the name \"gr??e\" is not UTF-8");
    cr_expect(!sb_safetensors_save(path, 1, &of_freed, 0, NULL));
    EXPECT_ERROR("freed by backward");
    cr_expect(!sb_safetensors_save(path, 0, NULL, 3, key_twice));
    EXPECT_ERROR("safetensors_save: the metadata has \"k\" twice");
    cr_expect(!sb_safetensors_save(path, 0, NULL, 1, latin_text));
    EXPECT_ERROR("safetensors_save: the metadata text \"?\" is not UTF-8");
    cr_expect(!file_exists(path));
}

CPU_TEST(safetensors, headers_up_to_the_limit_are_written_and_longer_ones_refused)
{
    const char *path = test_temporary("a.safetensors");
    const size_t around = strlen("{\"__metadata__\":{\"k\":\"\"}}");
    size_t size = HEADER_LIMIT - around;
    char *text = malloc(size + 2);
    memset(text, 'x', size + 1);
    text[size] = '\0';
    const char *const pair[][2] = {{"k", text}};
    cr_assert(sb_safetensors_save(path, 0, NULL, 1, pair), "%s", sb_error());
    sb_safetensors *file = sb_safetensors_open(path);
    cr_assert(file, "%s", sb_error());
    cr_expect(strcmp(sb_safetensors_metadata(file, "k"), text) == 0);
    sb_safetensors_close(file);
    text[size] = 'x';
    text[size + 1] = '\0';
    cr_expect(!sb_safetensors_save(path, 0, NULL, 1, pair));
    EXPECT_ERROR("safetensors_save: names and metadata make a header of more than 16777216 bytes");
    free(text);
}
