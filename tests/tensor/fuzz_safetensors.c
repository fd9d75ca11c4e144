/* The target of libFuzzer (fuzz.sh): opens any bytes as a safetensors file and reads all of it. */
#include "tensor/safetensors.h"
#include "tests/support/fuzz.h"
#include "tests/support/json_memory.h"
#include <string.h>

static void read_all(const sb_safetensors *file)
{
    for (int i = 0; i < sb_safetensors_count(file); i++) {
        const char *name = sb_safetensors_name(file, i);
        check(sb_safetensors_find(file, name) == i, "a tensor is found by its name");
        sb_tensor *t = sb_safetensors_tensor(file, name);
        check(t || strstr(sb_error(), "which") || strstr(sb_error(), "cannot be read"),
              "elements are read, or refused with a reason");
        check(!t || sb_tensor_rank(t) == sb_safetensors_rank(file, i), "the rank is the header's");
        sb_tensor_release(t);
    }
    for (int i = 0; i < sb_safetensors_metadata_count(file); i++) {
        const char *text, *key = sb_safetensors_metadata_pair(file, i, &text);
        check(sb_safetensors_metadata(file, key) == text, "metadata is found by its key");
    }
}

static void run(const uint8_t *bytes, size_t size)
{
    sb_device_reset_peak(sb_device_cpu());
    json_memory_count();
    sb_safetensors *file = sb_safetensors_open_memory(bytes, size);
    int64_t peak = sb_device_memory(sb_device_cpu()).peak_bytes + json_memory_peak;
    check(peak <= 40 * (int64_t)size + 8192, "opening takes at most 40 times the header");
    check(file || strncmp(sb_error(), "safetensors: the file in memory: ", 33) == 0,
          "a refusal names the file");
    if (file)
        read_all(file);
    sb_safetensors_close(file);
    check(memory_pool()->live_blocks == 0 && json_memory_live == 0, "nothing is live at the end");
}

/* The bytes as they are, and with the header's length set to the position of the last brace:
   otherwise most changes to a header only make its length wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    run(bytes, size);
    size_t end = size;
    while (end > 8 && bytes[end - 1] != '}')
        end--;
    if (end <= 8)
        return 0;
    uint8_t *repaired = malloc(size);
    check(repaired != NULL, "there is memory");
    memcpy(repaired, bytes, size);
    for (int i = 0; i < 8; i++)
        repaired[i] = (uint8_t)((end - 8) >> 8 * i);
    run(repaired, size);
    free(repaired);
    return 0;
}
