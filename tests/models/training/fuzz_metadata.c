/* What libFuzzer runs, see fuzz.sh: reads any text as the metadata of a model's file, which has its
   settings and vocabularies. */
#include "models/training/metadata.h"
#include "tests/support/fuzz.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct metadata first, second;
    struct settings settings;
    char *text = memory_text_part((const char *)bytes, size);
    if (text && metadata_read(text, &first)) {
        char *written = metadata_write(&first);
        check(written != NULL, "what is read is written");
        check(metadata_read(written, &second), "what is written is read");
        metadata_free(&second);
        memory_free(written);
        settings_read(&settings, first.model);
        metadata_free(&first);
    } else {
        check(sb_error()[0], "a refusal has a message");
    }
    memory_free(text);
    check(memory_pool()->live_blocks == 0, "nothing is live at the end");
    return 0;
}
