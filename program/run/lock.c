/* The lock of a run on its state. Each save replaces that file, and the new one is locked again. */
#include "program/run/training.h"
#include "tensor/error.h"
#include "tensor/file.h"
#include "tensor/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool training_refuse_second(const struct training *t)
{
    return sb_fail("another training run writes %s; wait for its end, or name another --out",
                   utf8_quote(t->out).text);
}

void training_unlock(struct training *t)
{
    if (t->lock >= 0)
        close(t->lock);
    t->lock = -1;
}

bool training_lock(struct training *t)
{
    if (!training_writes(t))
        return true;
    const int descriptor = file_descriptor(t->state_path, O_RDONLY, 0);
    if (descriptor < 0)
        return file_fail("train", "open", t->state_path);
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(descriptor);
        return training_refuse_second(t);
    }
    training_unlock(t);
    t->lock = descriptor;
    return true;
}

bool training_holds_lock(const struct training *t)
{
    struct stat now, locked;
    return t->lock < 0 || stat(t->state_path, &now) != 0 || fstat(t->lock, &locked) != 0 ||
           (now.st_dev == locked.st_dev && now.st_ino == locked.st_ino) ||
           training_refuse_second(t);
}
