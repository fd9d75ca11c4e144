/* For a Meson subproject, which is not installed: #include <softback/softback.h> finds this one. */
#include "../../../softback.h"
