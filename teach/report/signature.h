/* The first bytes of files that softback writes and may overwrite: it overwrites no others. */
#ifndef SOFTBACK_TEACH_REPORT_SIGNATURE_H
#define SOFTBACK_TEACH_REPORT_SIGNATURE_H

#define SIGNATURE_PAGE "<!DOCTYPE html>\n<!-- softback report -->\n"
#define SIGNATURE_FIGURE "<!-- softback figure -->\n"
#define SIGNATURE_LOG "{\"softback\":\"log\",\"format\":1}\n" /* its first line */

#endif
