#include "tensor/safetensors_parts.h"
#include "tests/support/json_memory.h"
#include "tests/support/test.h"
#include <stdio.h>

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
        {HEADER_LIMIT + 1, "not a safetensors file: its first 8 bytes are no length of a header"},
        {UINT64_MAX, "not a safetensors file: its first 8 bytes are no length of a header"},
        {UINT64_MAX - 7, "which has at most 16777216 bytes"},
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
    cr_assert(opens(bytes, size), "%s", sb_error());
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
    cr_assert(file, "%s", sb_error());
    cr_expect(!sb_safetensors_tensor(file, "x"));
    EXPECT_ERROR("tensor \"x\": element 2 is 2, which bool cannot represent");
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
        char *list = malloc(UNITS * ROOM), *header = malloc(UNITS * ROOM + 60);
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
        free(list);
        free(header);
        free(bytes);
    }
    cr_expect(json_memory_live == 0);
}
