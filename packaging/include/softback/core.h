/* The same for #include <softback/core.h>. */
#include "../../../core.h"
