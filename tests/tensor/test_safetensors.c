#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/safetensors_parts.h"
#include "tests/support/json_memory.h"
#include "tests/support/test.h"
#include "tests/support/trace.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
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
    REFUSED("tensor \"i64.large\": element 2 is -3000000000, which i32 cannot represent",
            sb_safetensors_tensor(file, "i64.large"));
    REFUSED("tensor \"u64.large\": element 0 is 18446744073709551615, which i32 cannot",
            sb_safetensors_tensor(file, "u64.large"));
    REFUSED("tensor \"u32.large\": element 0 is 2147483648, which i32 cannot represent",
            sb_safetensors_tensor(file, "u32.large"));
}

TEST(safetensors, bf16_is_widened_and_8_bit_floats_are_listed_but_not_read)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/bf16.safetensors")));
    expect_values(file, "bf16", SB_F32, "(3)", VALUES(1.5, -2, INFINITY));
    cr_expect(strcmp(sb_safetensors_dtype(file, 1), "F8_E4M3") == 0);
    REFUSED("bf16.safetensors\": tensor \"f8\": elements of F8_E4M3 cannot be read",
            sb_safetensors_tensor(file, "f8"));
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

/* The tensors of make_safetensors.py, in another order. */
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
    for (int i = 0; i < OWN; i++)
        KEPT((sb_tensor *)item[i].tensor);
}

static bool same_bytes(const char *a, const char *b)
{
    size_t size_a = 0, size_b = 0;
    char *bytes_a = KEPT(file_text("test", a, 1 << 20, &size_a));
    char *bytes_b = KEPT(file_text("test", b, 1 << 20, &size_b));
    return bytes_a && bytes_b && size_a == size_b && memcmp(bytes_a, bytes_b, size_a) == 0;
}

static const char *const one_pair[][2] = {{METADATA_KEY, METADATA_TEXT}};

TEST(safetensors, written_files_have_the_bytes_of_the_reference_library)
{
    const char *path = test_temporary("own.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    MUST(sb_safetensors_save(path, OWN, item, 1, one_pair));
    cr_expect(same_bytes(path, test_path("golden/writer.safetensors")));
}

TEST(safetensors, written_files_are_read_back)
{
    const char *path = test_temporary("own.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    MUST(sb_safetensors_save(path, OWN, item, 1, one_pair));
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
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
    MUST(sb_safetensors_save(path, OWN, item, 1, one_pair));
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
    REFUSED("safetensors_name: 2 is not in 0..1", sb_safetensors_name(file, 2));
    cr_expect(!sb_safetensors_dtype(file, -1) && !sb_safetensors_shape(file, 2));
    cr_expect(sb_safetensors_rank(file, 2) == -1);
    EXPECT_ERROR("safetensors_rank: 2 is not in 0..1");
    REFUSED("safetensors_metadata_pair: 2 is not in 0..1",
            sb_safetensors_metadata_pair(file, 2, &text));
}

TEST(safetensors, every_name_is_found_among_many)
{
    enum { MANY = 1000 };
    const char *path = test_temporary("many.safetensors");
    sb_named_tensor item[MANY];
    char name[MANY][16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "x%d", i * 7 % MANY);
        item[i] = (sb_named_tensor){name[i], KEPT(sb_tensor_scalar(SB_I32, i * 7 % MANY))};
    }
    MUST(sb_safetensors_save(path, MANY, item, 0, NULL));
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    for (int i = 0; i < MANY; i++) {
        sb_tensor *t = KEPT(sb_safetensors_tensor(file, name[i]));
        cr_assert(t && sb_tensor_value(t) == i * 7 % MANY, "%s", name[i]);
    }
}

CPU_TEST(safetensors, a_file_without_tensors_is_valid)
{
    const char *path = test_temporary("none.safetensors");
    MUST(sb_safetensors_save(path, 0, NULL, 0, NULL));
    size_t size;
    char *bytes = file_text("test", path, 100, &size);
    cr_expect(size == 16 && memcmp(bytes, "\x08\0\0\0\0\0\0\0{}      ", 16) == 0);
    memory_free(bytes);
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_expect(sb_safetensors_count(file) == 0 && sb_safetensors_metadata_count(file) == 0);
    REFUSED("none.safetensors\": has no tensor \"x\"", sb_safetensors_tensor(file, "x"));
}

/* More elements than pass through the buffers at once, and a view that begins inside. */
TEST(safetensors, long_tensors_and_views_survive)
{
    const char *path = test_temporary("long.safetensors");
    enum { n = 3 * CODEC_ELEMENTS + 17 };
    static unsigned char yes[n];
    sb_tensor *x = test_leaf(SB_F32, 5, SB_SHAPE(n));
    sb_tensor *view = KEPT(tensor_view("test", x, 10, SB_SHAPE(2, 4000)));
    memset(yes, 1, n - 1);
    yes[n - 1] = 7; /* any nonzero byte of a bool becomes 1 in the file */
    sb_tensor *truth = KEPT(sb_tensor_from(SB_BOOL, SB_SHAPE(n), yes));
    sb_named_tensor item[] = {{"x", x}, {"view", view}, {"truth", truth}};
    MUST(sb_safetensors_save(path, 3, item, 0, NULL));
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
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
    MUST(file && sb_safetensors_read(file, "f64.matrix", fits));
    cr_expect(sb_tensor_get(fits, 0) == -0.375 && sb_tensor_get(fits, 5) == 0.25);
    REFUSED("tensor \"f64.matrix\": is F64 (2, 3), into is f32 (2, 3)",
            sb_safetensors_read(file, "f64.matrix", narrow));
    REFUSED("tensor \"f64.matrix\": is F64 (2, 3), into is f64 (3, 2)",
            sb_safetensors_read(file, "f64.matrix", turned));
    tensor_free_data(turned);
    REFUSED("freed by backward", sb_safetensors_read(file, "f64.matrix", turned));
}

TEST(safetensors, a_file_that_shrinks_after_opening_is_noticed)
{
    const char *path = test_temporary("a.safetensors");
    sb_named_tensor item[OWN];
    make_own(item);
    MUST(sb_safetensors_save(path, OWN, item, 0, NULL));
    sb_safetensors *file = KEPT(sb_safetensors_open(path));
    cr_assert(file && truncate(path, 600) == 0);
    REFUSED("a.safetensors\" ends at byte 600", sb_safetensors_tensor(file, "f64.matrix"));
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
    REFUSED("safetensors_save: two tensors are called \"x\"",
            sb_safetensors_save(path, 3, twice, 0, NULL));
    REFUSED("safetensors_save: a tensor cannot be called __metadata__",
            sb_safetensors_save(path, 1, &metadata, 0, NULL));
    REFUSED("safetensors_save: the name \"gr??e\" is not UTF-8",
            sb_safetensors_save(path, 1, &latin, 0, NULL));
    REFUSED("freed by backward", sb_safetensors_save(path, 1, &of_freed, 0, NULL));
    REFUSED("safetensors_save: the metadata has \"k\" twice",
            sb_safetensors_save(path, 0, NULL, 3, key_twice));
    REFUSED("safetensors_save: the metadata text \"?\" is not UTF-8",
            sb_safetensors_save(path, 0, NULL, 1, latin_text));
    cr_expect(!file_exists(path));
}

CPU_TEST(safetensors, headers_up_to_the_limit_are_written_and_longer_ones_refused)
{
    const char *path = test_temporary("a.safetensors");
    const size_t around = strlen("{\"__metadata__\":{\"k\":\"\"}}");
    size_t size = HEADER_LIMIT - around;
    char *text = KEPT(malloc(size + 2));
    memset(text, 'x', size + 1);
    text[size] = '\0';
    const char *const pair[][2] = {{"k", text}};
    MUST(sb_safetensors_save(path, 0, NULL, 1, pair));
    sb_safetensors *file = MUST(sb_safetensors_open(path));
    cr_expect(strcmp(sb_safetensors_metadata(file, "k"), text) == 0);
    sb_safetensors_close(file);
    text[size] = 'x';
    text[size + 1] = '\0';
    REFUSED("safetensors_save: names and metadata make a header of more than 16777216 bytes",
            sb_safetensors_save(path, 0, NULL, 1, pair));
}

/* A file of this header, its length and `data` zero bytes, in a block of exactly its size, so that
   a sanitizer sees a step beyond it. */
static unsigned char *make_file(const char *header, uint64_t length, size_t data, size_t *size)
{
    size_t text = strlen(header);
    *size = HEADER_LENGTH_BYTES + text + data;
    unsigned char *bytes = calloc(1, *size);
    for (int i = 0; i < HEADER_LENGTH_BYTES; i++)
        bytes[i] = (unsigned char)(length >> 8 * i);
    memcpy(bytes + HEADER_LENGTH_BYTES, header, text);
    return bytes;
}

static bool opens(const unsigned char *bytes, size_t size)
{
    sb_safetensors *file = sb_safetensors_open_memory(bytes, size);
    sb_safetensors_close(file);
    return file != NULL;
}

/* {"x": {...}} with one float; its fields may be wrong. */
#define X(dtype, shape, offsets)                                                                   \
    "\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{" X(dtype, shape, offsets) "}"
#define F32 "\"F32\""

struct hostile {
    const char *header;
    size_t data;
    const char *message; /* after: safetensors: the file in memory: */
};

static const struct hostile table[] = {
    /* JSON */
    {"", 0, "JSON, byte 0: \"'[' or '{' expected near end of file\""},
    {"[]", 0, "its header is not an object"},
    {"nil", 0, "JSON, byte 3: \"'[' or '{' expected near 'nil'\""},
    {"{", 0, "JSON, byte 1: \"string or '}' expected near end of file\""},
    {"{}}", 0, "JSON, byte 3: \"end of file expected near '}'\""},
    {"{\"x\":1}", 0, "tensor \"x\": has no dtype"},
    {"{\"x\":null}", 0, "tensor \"x\": has no dtype"},
    {"{\"x\":[[[]]]}", 0, "tensor \"x\": has no dtype"},
    {"{\"x\":[[[[[[[[]]]]]]]]}", 0, "JSON: 22 bytes need more than 36 times as much memory"},
    {"{\"x\":{\"dtype\":{\"dtype\":{}}}}", 0, "tensor \"x\": has no shape"},
    {"{\"\\u0000\":{}}", 0, "JSON, byte 9: \"NUL byte in object key not supported"},
    {"{\"\xC3(\":{}}", 0, "JSON, byte 2: \"unable to decode byte 0xc3"},
    {"{\"\n\":{}}", 0, "JSON, byte 2: \"unexpected newline"},
    {"\xEF\xBB\xBF{}", 0, "JSON, byte 3: "},
    {ONE(F32, "[1]", "[0,4]") "x", 4, "JSON, byte 55: \"end of file expected near 'x'\""},
    /* properties of a tensor */
    {"{\"x\":{}}", 0, "tensor \"x\": has no dtype"},
    {"{\"x\":{\"dtype\":\"F32\"}}", 0, "tensor \"x\": has no shape"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, "tensor \"x\": has no data_offsets"},
    {"{\"x\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, "tensor \"x\": has no dtype"},
    {"{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "duplicate object key near '\"dtype\"'"},
    {"{\"x\":{\"shape\":[],\"shape\":[]}}", 0, "duplicate object key near '\"shape\"'"},
    {"{\"x\":{\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}", 4,
     "duplicate object key near '\"data_offsets\"'"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"strides\":[1]}}", 4,
     "tensor \"x\": has more than dtype, shape and data_offsets"},
    {ONE("\"F33\"", "[1]", "[0,4]"), 4, "tensor \"x\": the dtype \"F33\" is unknown"},
    {ONE("\"f32\"", "[1]", "[0,4]"), 4, "tensor \"x\": the dtype \"f32\" is unknown"},
    {ONE("32", "[1]", "[0,4]"), 4, "tensor \"x\": the dtype is not a string"},
    {ONE("null", "[1]", "[0,4]"), 4, "tensor \"x\": the dtype is not a string"},
    /* shapes */
    {ONE(F32, "1", "[0,4]"), 4, "tensor \"x\": shape is not an array of at most 6 numbers"},
    {ONE(F32, "[-1]", "[0,4]"), 4, "tensor \"x\": shape[0] is not an integer >= 0"},
    {ONE(F32, "[1.0]", "[0,4]"), 4, "tensor \"x\": shape[0] is not an integer >= 0"},
    {ONE(F32, "[\"1\"]", "[0,4]"), 4, "tensor \"x\": shape[0] is not an integer >= 0"},
    {ONE(F32, "[[1]]", "[0,4]"), 4, "tensor \"x\": shape[0] is not an integer >= 0"},
    {ONE(F32, "[1,1,1,1,1,1,1]", "[0,4]"), 4,
     "tensor \"x\": shape is not an array of at most 6 numbers"},
    {ONE(F32, "[18446744073709551617]", "[0,4]"), 4, "too big integer"},
    {ONE(F32, "[4611686018427387905]", "[0,4]"), 4,
     "tensor \"x\": the shape (4611686018427387905) has more elements than any memory holds"},
    {ONE(F32, "[4294967296,4294967296]", "[0,0]"), 0,
     "tensor \"x\": the shape (4294967296, 4294967296) has more elements than any memory holds"},
    {ONE(F32, "[0,4294967296,4294967296]", "[0,0]"), 0, "has more elements than any memory holds"},
    {ONE(F32, "[2]", "[0,4]"), 4,
     "tensor \"x\": the shape (2) of F32 takes 8 bytes, data_offsets span 4"},
    {ONE("\"F64\"", "[1]", "[0,4]"), 4,
     "tensor \"x\": the shape (1) of F64 takes 8 bytes, data_offsets span 4"},
    {ONE("\"BOOL\"", "[]", "[0,0]"), 0,
     "tensor \"x\": the shape () of BOOL takes 1 bytes, data_offsets span 0"},
    {ONE(F32, "[0]", "[0,4]"), 4,
     "tensor \"x\": the shape (0) of F32 takes 0 bytes, data_offsets span 4"},
    /* offsets */
    {ONE(F32, "[1]", "[]"), 4, "tensor \"x\": data_offsets are not two numbers"},
    {ONE(F32, "[1]", "[0]"), 4, "tensor \"x\": data_offsets are not two numbers"},
    {ONE(F32, "[1]", "[0,4,8]"), 4,
     "tensor \"x\": data_offsets is not an array of at most 2 numbers"},
    {ONE(F32, "[1]", "[0,4,8,12]"), 4,
     "tensor \"x\": data_offsets is not an array of at most 2 numbers"},
    {ONE(F32, "[1]", "[4,0]"), 4, "tensor \"x\": data_offsets end at 0, before their begin 4"},
    {ONE(F32, "[1]", "[0,4]"), 3, "tensor \"x\": data_offsets end at 4, but the file has 3 bytes"},
    {ONE(F32, "[1]", "[0,4]"), 0, "tensor \"x\": data_offsets end at 4, but the file has 0 bytes"},
    {ONE(F32, "[1]", "[9223372036854775803,9223372036854775807]"), 4,
     "tensor \"x\": data_offsets end at 9223372036854775807, but the file has 4 bytes of data"},
    {ONE(F32, "[1]", "[0,4]"), 5, "1 bytes at the end of the file belong to no tensor"},
    {"{}", 1, "1 bytes at the end of the file belong to no tensor"},
    {ONE(F32, "[1]", "[4,8]"), 8,
     "tensor \"x\": data_offsets begin at 4, where 0 is expected: a gap in the data"},
    {"{" X(F32, "[1]", "[0,4]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
     12, "tensor \"y\": data_offsets begin at 8, where 4 is expected: a gap in the data"},
    {"{" X(F32, "[2]", "[0,8]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12, "tensor \"y\": data_offsets begin at 4, where 8 is expected: tensors overlap"},
    {"{" X(F32, "[2]", "[0,8]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8, "data_offsets begin at 0, where 8 is expected: tensors overlap"},
    {"{" X(F32, "[2]", "[0,8]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}",
     8, "tensor \"y\": data_offsets begin at 4, where 8 is expected: tensors overlap"},
    /* names and metadata */
    {"{" X(F32, "[1]", "[0,4]") "," X(F32, "[1]", "[4,8]") "}", 8, "duplicate object key"},
    {"{" X(F32, "[1]", "[0,4]") ",\"\\u0078\":{\"dtype\":\"F32\",\"shape\":[0],"
                                "\"data_offsets\":[4,4]}}",
     4, "duplicate object key"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0,
     "duplicate object key near '\"__metadata__\"'"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "duplicate object key near '\"k\"'"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "the metadata's \"k\" is not a string"},
    {"{\"__metadata__\":{\"k\":{\"k\":\"v\"}}}", 0, "the metadata's \"k\" is not a string"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":null}", 0, "__metadata__ is not an object"},
    /* a message is safe to show in a terminal */
    {"{\"\\u001b[2J\\u009b\":{}}", 0, "tensor \"?[2J?\": has no dtype"},
};

CPU_TEST(safetensors_header, hostile_files_are_refused_with_a_clear_message)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        size_t size;
        unsigned char *bytes =
            make_file(table[i].header, strlen(table[i].header), table[i].data, &size);
        cr_assert(!opens(bytes, size), "%s", table[i].header);
        EXPECT_ERROR("safetensors: the file in memory: ");
        EXPECT_ERROR(table[i].message);
        free(bytes);
    }
}

CPU_TEST(safetensors_header, hostile_files_are_refused_from_disk_by_name)
{
    const char *path = test_temporary("hostile.safetensors");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        size_t size;
        unsigned char *bytes =
            make_file(table[i].header, strlen(table[i].header), table[i].data, &size);
        FILE *file = fopen(path, "wb");
        cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
        free(bytes);
        cr_assert(!sb_safetensors_open(path), "%s", table[i].header);
        EXPECT_ERROR("/hostile.safetensors\": ");
        EXPECT_ERROR(table[i].message);
    }
}

CPU_TEST(safetensors_header, wrong_lengths_of_the_header_are_refused)
{
    static const struct {
        uint64_t length;
        const char *message;
    } lengths[] = {
        {0, "expected near end of file"},
        {1, "JSON, byte 1: \"string or '}' expected near end of file"},
        {53, "JSON, byte 53: \"'}' expected near end of file"},
        {58, "JSON, byte 54: a NUL byte, expected text"}, /* the first of the data */
        {59, "a header of 59 bytes, but only 58 follow"},
        {HEADER_LIMIT, "a header of 16777216 bytes, but only 58 follow"},
        {HEADER_LIMIT + 1, "its first 8 bytes are no length of a header"},
        {UINT64_MAX, "its first 8 bytes are no length of a header"},
        {UINT64_MAX - 7, "which is at most 16777216"},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t size;
        unsigned char *bytes = make_file(ONE(F32, "[1]", "[0,4]"), lengths[i].length, 4, &size);
        cr_assert(!opens(bytes, size), "%llu", (unsigned long long)lengths[i].length);
        EXPECT_ERROR(lengths[i].message);
        free(bytes);
    }
}

CPU_TEST(safetensors_header, every_truncation_is_refused)
{
    const char *header = "{\"__metadata__\":{\"k\":\"v\"}," X(F32, "[1]", "[0,4]") "}  ";
    size_t size;
    unsigned char *bytes = make_file(header, strlen(header), 4, &size);
    MUST(opens(bytes, size));
    for (size_t shorter = 0; shorter < size; shorter++) {
        unsigned char *part = malloc(shorter ? shorter : 1);
        memcpy(part, bytes, shorter);
        cr_assert(!opens(part, shorter), "%zu of %zu bytes", shorter, size);
        if (shorter < HEADER_LENGTH_BYTES)
            EXPECT_ERROR("bytes, too few for the length of a header");
        free(part);
    }
    free(bytes);
}

/* Jansson takes a NUL for the end of a number: "[4\0,8]" would be read as [4, 8]. */
CPU_TEST(safetensors_header, a_nul_byte_anywhere_is_refused)
{
    const char *header = "{\"__metadata__\":{\"k\":\"v\"}," X(F32, "[1]", "[0,4]") "} ";
    const size_t length = strlen(header);
    for (size_t at = 0; at <= length; at++) {
        size_t size;
        unsigned char *bytes = make_file(header, length + 1, 5, &size);
        unsigned char *text = bytes + HEADER_LENGTH_BYTES;
        char message[64];
        memmove(text + at + 1, text + at, length - at);
        text[at] = '\0';
        cr_expect(!opens(bytes, size), "a NUL byte at %zu is accepted", at);
        snprintf(message, sizeof message, "JSON, byte %zu: a NUL byte, expected text", at);
        EXPECT_ERROR(message);
        free(bytes);
    }
}

/* Any order of the tensors and of their properties, white space, and empty tensors between. */
CPU_TEST(safetensors_header, unusual_but_valid_headers_are_accepted)
{
    static const struct hostile valid[] = {
        {"{}", 0, ""},
        {" {\n} \t\r\n", 0, ""},
        {"{\"\":{\"data_offsets\":[0,1],\"shape\":[],\"dtype\":\"BOOL\"}}", 1, ""},
        {"{\"b\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[1,3]},"
         "\"e\":{\"dtype\":\"F64\",\"shape\":[0,9],\"data_offsets\":[1,1]},"
         "\"f\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[3,3]},"
         "\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         3, ""},
        {"{" X(F32, "[1,1,1,1,1,1]", "[0,4]") ",\"__metadata__\":{}}", 4, ""},
    };
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        size_t size;
        unsigned char *bytes =
            make_file(valid[i].header, strlen(valid[i].header), valid[i].data, &size);
        cr_expect(opens(bytes, size), "%s: %s", valid[i].header, sb_error());
        free(bytes);
    }
}

TEST(safetensors_header, a_bool_that_is_neither_0_nor_1_is_refused)
{
    size_t size;
    const char *header = ONE("\"BOOL\"", "[3]", "[0,3]");
    unsigned char *bytes = make_file(header, strlen(header), 3, &size);
    bytes[size - 1] = 2;
    sb_safetensors *file = KEPT(sb_safetensors_open_memory(bytes, size));
    REFUSED("tensor \"x\": element 2 is 2, which bool cannot represent",
            sb_safetensors_tensor(file, "x"));
    free(bytes);
}

/* Headers built to need as much memory as possible for their length. */
CPU_TEST(safetensors_header, opening_takes_little_memory_for_any_header)
{
    static const char *const unit[][2] = {
        {"\"%05d\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}", "{%s}"},
        {"\"%05d\":\"\"", "{\"__metadata__\":{%s}}"},
        {"%01d", "{\"x\":{\"dtype\":\"I8\",\"data_offsets\":[0,0],\"shape\":[%s]}}"},
        {"\"%03x\":[      ]", "{%s}"},
    };
    enum { UNITS = 20000, ROOM = 80, VALID = 2 };
    json_memory_count();
    for (int kind = 0; kind < 4; kind++) {
        char *list = KEPT(malloc(UNITS * ROOM)), *header = KEPT(malloc(UNITS * ROOM + 60));
        size_t used = 0, size;
        for (int i = 0; i < UNITS; i++) {
            used += (size_t)sprintf(list + used, "%s", i ? "," : "");
            used += (size_t)sprintf(list + used, unit[kind][0], i);
        }
        size_t length = (size_t)sprintf(header, unit[kind][1], list);
        unsigned char *bytes = make_file(header, length, 0, &size);
        int64_t before = memory_pool()->live_bytes;
        sb_device_reset_peak(sb_device_cpu());
        json_memory_peak = 0;
        cr_expect(opens(bytes, size) == (kind < VALID), "%s", sb_error());
        int64_t peak = sb_device_memory(sb_device_cpu()).peak_bytes - before + json_memory_peak;
        cr_expect(peak < 40 * (int64_t)length, "%g times the header of kind %d",
                  (double)peak / (double)length, kind);
        free(bytes);
    }
    cr_expect(json_memory_live == 0);
}

static const char *const metadata[][2] = {{"step", "1"}, {"b", "text"}};

static bool save(const char *path, double value)
{
    sb_tensor *weight = sb_tensor_full(SB_F32, SB_SHAPE(150, 200), value);
    sb_tensor *ids = sb_tensor_full(SB_I32, SB_SHAPE(3), value);
    sb_named_tensor item[] = {{"ids", ids}, {"weight", weight}};
    bool ok = weight && ids && sb_safetensors_save(path, 2, item, 2, metadata);
    sb_tensor_release(ids);
    sb_tensor_release(weight);
    return ok;
}

/* The value with which the file was saved; NaN if it is incomplete. */
static double saved_value(const char *path)
{
    sb_safetensors *file = sb_safetensors_open(path);
    sb_tensor *weight = sb_safetensors_tensor(file, "weight");
    sb_tensor *ids = sb_safetensors_tensor(file, "ids");
    double value = weight && ids ? sb_tensor_get(weight, 0) : NAN;
    for (int64_t i = 0; i < sb_tensor_size(weight); i++)
        value = sb_tensor_get(weight, i) == value ? value : NAN;
    if (sb_tensor_get(ids, 2) != value)
        value = NAN;
    sb_tensor_release(ids);
    sb_tensor_release(weight);
    sb_safetensors_close(file);
    return value;
}

static bool save_and_read(void *path)
{
    sb_safetensors *file = save(path, 3) ? sb_safetensors_open(path) : NULL;
    sb_tensor *t = file ? sb_safetensors_tensor(file, "weight") : NULL;
    bool ok = t && sb_tensor_get(t, 29999) == 3;
    sb_tensor_release(t);
    sb_safetensors_close(file);
    return ok;
}

TEST(safetensors_save, each_allocation_may_fail)
{
    cr_expect(test_each_allocation_fails(save_and_read, (void *)test_temporary("a")) >= 20);
}

TEST(safetensors_save, equal_arguments_give_equal_bytes)
{
    const char *a = test_temporary("a"), *b = test_temporary("b");
    MUST(save(a, 2) && save(b, 2));
    size_t size_a, size_b;
    char *bytes_a = KEPT(file_text("test", a, 1 << 20, &size_a));
    char *bytes_b = KEPT(file_text("test", b, 1 << 20, &size_b));
    cr_expect(bytes_a && bytes_b && size_a == size_b && memcmp(bytes_a, bytes_b, size_a) == 0);
}

TEST(safetensors_save, all_tensors_are_aligned)
{
    const char *path = test_temporary("a.safetensors");
    sb_tensor *flag = KEPT(sb_tensor_scalar(SB_BOOL, 1)), *x = KEPT(sb_tensor_scalar(SB_F32, 1)),
              *y = KEPT(sb_tensor_scalar(SB_F64, 1));
    sb_named_tensor item[] = {{"a", flag}, {"b", x}, {"c", y}, {"d", flag}, {"e", y}};
    MUST(sb_safetensors_save(path, 5, item, 1, metadata));
    size_t size;
    char *bytes = KEPT(file_text("test", path, 4096, &size));
    uint64_t length;
    cr_assert(bytes != NULL);
    memcpy(&length, bytes, 8);
    cr_expect(length % 8 == 0);
    cr_expect(strstr(bytes + 8, "\"c\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}"));
    cr_expect(strstr(bytes + 8, "\"e\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]}"));
    cr_expect(strstr(bytes + 8, "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]}"));
    cr_expect(
        strstr(bytes + 8, "\"d\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[21,22]}"));
}

TEST(safetensors_save, on_a_full_disk_the_old_checkpoint_stays)
{
    const char *path = test_temporary("a.safetensors");
    MUST(save(path, 1));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit, small;
    cr_assert(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    small = (struct rlimit){100000, limit.rlim_max};
    cr_assert(setrlimit(RLIMIT_FSIZE, &small) == 0);
    bool saved = save(path, 2);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cr_expect(!saved);
    EXPECT_ERROR("safetensors_save: cannot write \"");
    EXPECT_ERROR("File too large");
    cr_expect(saved_value(path) == 1);
}

static int save_traced(const void *path)
{
    return save(path, 2) ? 0 : 1;
}

CPU_TEST(safetensors_save, a_process_killed_at_any_system_call_leaves_the_old_or_the_new_checkpoint)
{
    const char *path = test_temporary("a.safetensors");
    int left[3] = {0};
    for (int at = 0;; at++) {
        cr_assert(save(path, 1), "after a kill at call %d: %s", at - 1, sb_error());
        struct trace trace = trace_run(save_traced, path, TRACE_KILL, at, 0);
        if (!trace.possible)
            cr_skip_test("no permission to trace a process");
        double value = saved_value(path);
        cr_assert(value == 1 || value == 2, "after call %d: %s", at, sb_error());
        left[(int)value]++;
        if (!trace.killed)
            break;
    }
    cr_expect(left[1] > 8 && left[2] > 2, "%d old, %d new", left[1], left[2]);
}
