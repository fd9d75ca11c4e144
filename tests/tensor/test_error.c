#include "tensor/failure.h"
#include "tests/support/test.h"

CPU_TEST(error, a_failure_leaves_its_message)
{
    cr_expect(strcmp(sb_error(), "") == 0, "nothing has failed yet");
    cr_expect(!sb_fail("test: %d is not %s", 7, "even"));
    cr_expect(strcmp(sb_error(), "test: 7 is not even") == 0);
    cr_expect(!sb_fail("again: %s", sb_error()), "the old message may be part of the new one");
    cr_expect(strcmp(sb_error(), "again: test: 7 is not even") == 0);
}

CPU_TEST(error, a_long_message_is_cut)
{
    sb_fail("%02000d", 7);
    cr_expect(strlen(sb_error()) == 1023);
}

CPU_TEST(error, a_watched_failure_sets_the_flag_and_keeps_the_first_message)
{
    bool failed = false, other = false;
    failure_watch(&failed);
    sb_fail("first");
    sb_fail("second");
    cr_expect(failed && strcmp(sb_error(), "first") == 0);
    failure_watch(&other);
    cr_expect(!other);
    sb_fail("third");
    cr_expect(other && strcmp(sb_error(), "third") == 0);
    failure_watch(NULL);
    sb_fail("fourth");
    cr_expect(strcmp(sb_error(), "fourth") == 0);
}

CPU_TEST(error, the_message_for_null_has_the_unread_failure_that_caused_it)
{
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL") == 0);
    sb_fail("exp: it broke");
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL, because exp: it broke") == 0);
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL") == 0, "it was read");
    failure_settled();
    fail_null("add", "a");
    cr_expect(strcmp(sb_error(), "add: a is NULL") == 0);
}
