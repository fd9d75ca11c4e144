/* The first bytes of files that softback writes and may overwrite: it overwrites no others. */
#ifndef SOFTBACK_TEACH_REPORT_SIGNATURE_H
#define SOFTBACK_TEACH_REPORT_SIGNATURE_H

#define SIGNATURE_PAGE "<!DOCTYPE html>\n<!-- softback report -->\n"
#define SIGNATURE_FIGURE "<!-- softback figure -->\n"

/* The first line of a log; later versions read this format. */
#define SIGNATURE_LOG SIGNATURE_LOG_START "2}\n"
#define SIGNATURE_LOG_START "{\"softback\":\"log\",\"format\":"
enum { LOG_FORMAT = 2 };

#endif
