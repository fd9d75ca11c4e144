#include "tensor/version.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *sb_version(void)
{
    return TEXT(SB_VERSION_MAJOR) "." TEXT(SB_VERSION_MINOR) "." TEXT(SB_VERSION_PATCH);
}
