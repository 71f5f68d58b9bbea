#include "base/log.h"

#include "base/test.h"

#include <string.h>

struct capture {
    int read_fd;
    struct log log;
    char text[8192];
};

static struct capture capture_start(enum log_format format)
{
    struct capture capture = {0};
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    capture.read_fd = fds[0];
    capture.log = (struct log){.fd = fds[1], .format = format, .minimum = LOG_INFO};
    return capture;
}

/* What was logged; the log ends. */
static const char *capture_end(struct capture *capture)
{
    ssize_t length;

    close(capture->log.fd);
    length = read(capture->read_fd, capture->text, sizeof(capture->text) - 1);
    close(capture->read_fd);
    assert_true(length >= 0);
    capture->text[length] = '\0';
    return capture->text;
}

static void test_line_has_time_level_and_text(void **state)
{
    struct capture capture = capture_start(LOG_FORMAT_TEXT);
    (void)state;

    log_event(&capture.log, LOG_WARNING, "port %d is busy", 4566);
    const char *line = capture_end(&capture);
    assert_int_equal(line[4], '-');
    assert_int_equal(line[23], 'Z');
    assert_string_equal(line + 24, " warning port 4566 is busy\n");
}

static void test_lines_below_the_minimum_are_dropped(void **state)
{
    struct capture capture = capture_start(LOG_FORMAT_TEXT);
    (void)state;

    log_event(&capture.log, LOG_DEBUG, "hidden");
    log_event(NULL, LOG_ERROR, "nobody listens");
    assert_string_equal(capture_end(&capture), "");
}

static void test_json_is_one_object_a_line(void **state)
{
    struct capture capture = capture_start(LOG_FORMAT_JSON);
    (void)state;

    log_event(&capture.log, LOG_ERROR, "a \"b\" \\ \n c");
    const char *line = capture_end(&capture);
    assert_memory_equal(line, "{\"time\":\"", 9);
    assert_string_equal(line + 33, "\",\"level\":\"error\",\"message\":\"a \\\"b\\\" \\\\ \\n c\"}\n");
}

static void test_newline_in_the_text_cannot_forge_a_line(void **state)
{
    struct capture capture = capture_start(LOG_FORMAT_TEXT);
    (void)state;

    log_event(&capture.log, LOG_INFO, "name %s", "x\n2026-01-02T03:04:05.678Z error forged\x1b[2J");
    const char *line = capture_end(&capture);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_non_null(strstr(line, "name x\\n2026-01-02T03:04:05.678Z error forged\\u001b[2J\n"));
}

static void test_long_lines_are_cut_and_still_end(void **state)
{
    static const enum log_format formats[] = {LOG_FORMAT_TEXT, LOG_FORMAT_JSON};
    char filler[6000];
    (void)state;

    memset(filler, '\x01', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct capture capture = capture_start(formats[i]);
        log_event(&capture.log, LOG_INFO, "%s", filler);
        const char *line = capture_end(&capture);
        size_t length = strlen(line);
        assert_in_range(length, 4000, 4400);
        assert_string_equal(line + length - (i ? 3 : 1), i ? "\"}\n" : "\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_has_time_level_and_text),
        cmocka_unit_test(test_lines_below_the_minimum_are_dropped),
        cmocka_unit_test(test_json_is_one_object_a_line),
        cmocka_unit_test(test_newline_in_the_text_cannot_forge_a_line),
        cmocka_unit_test(test_long_lines_are_cut_and_still_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
