#include "worker/function_log.h"

#include "base/clock.h"
#include "worker/log_record.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

#define NOW (INT64_C(1767225600123) * NS_PER_MS)

struct fixture {
    uv_loop_t loop;
    char root[64];
    struct function_log *log;
    struct function_log_stream *stream;
    int rooms;
};

static void on_room(void *context)
{
    ((struct fixture *)context)->rooms++;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    static const struct log quiet = {.fd = -1, .minimum = LOG_ERROR + 1};

    strcpy(fixture->root, "/tmp/kiln-log-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(function_log_new(&fixture->loop, fixture->root, &quiet, &fixture->log), 0);
    assert_int_equal(
        function_log_stream_open(fixture->log, "/aws/lambda/f", "2026/01/02[1]ab", on_room, fixture, &fixture->stream),
        0);
    *state = fixture;
    return 0;
}

static void finish(struct fixture *fixture)
{
    fixture->stream = function_log_stream_close(fixture->stream);
    fixture->log = function_log_free(fixture->log);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    char command[PATH_MAX];

    finish(fixture);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->root);
    assert_int_equal(system(command), 0);
    free(fixture);
    return 0;
}

static struct buffer read_file(struct fixture *fixture)
{
    struct buffer content = BUFFER_INIT;
    char path[PATH_MAX];
    CLEANUP(cleanup_close) int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "%s/~aws~lambda~f/2026~01~02[1]ab.log", fixture->root);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return content;
    do {
        assert_int_equal(buffer_reserve(&content, 65536), 0);
        n = read(fd, content.data + content.length, 65536);
        assert_true(n >= 0);
        content.length += (size_t)n;
    } while (n > 0);
    return content;
}

static void assert_file(struct fixture *fixture, const char *expected)
{
    CLEANUP(buffer_deinit) struct buffer content = read_file(fixture);

    assert_int_equal(content.length, strlen(expected));
    assert_memory_equal(content.data, expected, content.length);
}

static void test_nothing_is_written_before_the_flush_and_all_after(void **state)
{
    struct fixture *fixture = *state;

    function_log_line(fixture->stream, SPAN("START\n"), NOW);
    assert_file(fixture, "");
    finish(fixture);
    assert_file(fixture, "1767225600123 6 START\n");
}

static void on_late(uv_timer_t *timer)
{
    (void)timer;
}

static void test_timer_flushes_by_itself(void **state)
{
    struct fixture *fixture = *state;
    uv_timer_t timer;

    uv_timer_init(&fixture->loop, &timer);
    uv_timer_start(&timer, on_late, 60000, 0); /* keeps the loop going: the log's own timer does not */
    function_log_line(fixture->stream, SPAN("START\n"), NOW);
    for (int turn = 0; turn < 20 && uv_run(&fixture->loop, UV_RUN_ONCE); turn++) {
        CLEANUP(buffer_deinit) struct buffer content = read_file(fixture);

        if (content.length)
            break;
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_file(fixture, "1767225600123 6 START\n");
}

static void test_output_is_cut_into_lines_whatever_its_pieces(void **state)
{
    struct fixture *fixture = *state;

    function_log_output(fixture->stream, SPAN("a\nb"), NOW);
    function_log_output(fixture->stream, SPAN("c"), NOW + NS_PER_MS);
    function_log_output(fixture->stream, SPAN("d\n\nrest"), NOW + 2 * NS_PER_MS);
    function_log_line(fixture->stream, SPAN("END\n"), NOW + 3 * NS_PER_MS);
    finish(fixture);
    assert_file(fixture, "1767225600123 2 a\n1767225600123 4 bcd\n1767225600125 1 \n1767225600125 4 rest\n"
                         "1767225600126 4 END\n");
}

static void test_endless_line_is_cut_at_the_event_limit(void **state)
{
    struct fixture *fixture = *state;
    char piece[1000];
    CLEANUP(buffer_deinit) struct buffer content = BUFFER_INIT;
    struct span rest;
    struct log_record record;
    size_t total = 0, events = 0;

    memset(piece, 'x', sizeof(piece));
    for (int i = 0; i < 600; i++)
        function_log_output(fixture->stream, span_of(piece, sizeof(piece)), NOW);
    finish(fixture);
    content = read_file(fixture);
    rest = buffer_span(&content);
    for (; log_record_parse(&rest, &record) == 0; events++)
        total += record.message.length;
    assert_int_equal(rest.length, 0);
    assert_int_equal(total, 600000);
    assert_int_equal(events, 3);
}

static void test_tail_ends_a_line_that_was_cut_at_its_full_length(void **state)
{
    struct fixture *fixture = *state;
    static char flood_bytes[LOG_RECORD_MESSAGE_MAX];
    CLEANUP(buffer_deinit) struct buffer tail = BUFFER_INIT;

    memset(flood_bytes, 'x', sizeof(flood_bytes));
    function_log_set_tail(fixture->stream, &tail);
    function_log_output(fixture->stream, span_of(flood_bytes, sizeof(flood_bytes)), NOW);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    assert_int_equal(tail.length, FUNCTION_LOG_TAIL_BYTES);
    assert_memory_equal(tail.data + tail.length - 6, "x\nEND\n", 6);
    function_log_set_tail(fixture->stream, NULL);
}

static void test_tail_keeps_the_last_4_kb(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer tail = BUFFER_INIT;
    char line[101];

    memset(line, 'y', 100);
    line[99] = '\n';
    function_log_set_tail(fixture->stream, &tail);
    function_log_line(fixture->stream, SPAN("START\n"), NOW);
    function_log_output(fixture->stream, SPAN("out"), NOW);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    assert_int_equal(tail.length, strlen("START\nout\nEND\n"));
    assert_memory_equal(tail.data, "START\nout\nEND\n", tail.length);
    for (int i = 0; i < 100; i++)
        function_log_output(fixture->stream, span_of(line, 100), NOW);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    assert_int_equal(tail.length, FUNCTION_LOG_TAIL_BYTES);
    assert_memory_equal(tail.data + tail.length - 4, "END\n", 4);
    function_log_set_tail(fixture->stream, NULL);
    function_log_output(fixture->stream, SPAN("late\n"), NOW);
    assert_memory_equal(tail.data + tail.length - 4, "END\n", 4);
}

static void flood(struct fixture *fixture, size_t bytes)
{
    static char lines[64 * 1024];

    for (size_t i = 0; i < sizeof(lines); i++)
        lines[i] = i % 100 == 99 ? '\n' : 'z';
    for (size_t sent = 0; sent < bytes; sent += sizeof(lines))
        function_log_output(fixture->stream, span_of(lines, sizeof(lines)), NOW);
}

static void test_full_stream_gets_room_once_written(void **state)
{
    struct fixture *fixture = *state;

    assert_false(function_log_is_full(fixture->stream));
    flood(fixture, 4 * 1024 * 1024);
    assert_true(function_log_is_full(fixture->stream));
    while (!fixture->rooms)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    assert_false(function_log_is_full(fixture->stream));
    assert_int_equal(fixture->rooms, 1);
    assert_int_equal(function_log_lost_bytes(fixture->log), 0);
}

static void test_stream_closed_during_a_write_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer content = BUFFER_INIT;
    struct span rest;
    struct log_record record;
    size_t events = 0;

    flood(fixture, 512 * 1024); /* starts a write */
    function_log_output(fixture->stream, SPAN("last"), NOW);
    fixture->stream = function_log_stream_close(fixture->stream);
    finish(fixture);
    content = read_file(fixture);
    rest = buffer_span(&content);
    while (log_record_parse(&rest, &record) == 0)
        events++;
    assert_int_equal(rest.length, 0);
    assert_int_equal(record.message.length, 4 + 64 * 1024 % 100);
    assert_in_range(events, 5000, 6000);
}

static void test_output_below_the_level_is_in_neither_file_nor_tail(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer tail = BUFFER_INIT;

    function_log_set_json(fixture->stream, LOG_LINE_WARN);
    function_log_set_tail(fixture->stream, &tail);
    function_log_output(fixture->stream, SPAN("{\"level\":\"debug\"}\nplain\n{\"level\":\"WA"), NOW);
    function_log_output(fixture->stream, SPAN("RN\"}\n{\"level\":\"ERROR\"}"), NOW);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    finish(fixture);
    assert_file(fixture, "1767225600123 17 {\"level\":\"WARN\"}\n1767225600123 17 {\"level\":\"ERROR\"}\n"
                         "1767225600123 4 END\n");
    assert_non_null(buffer_terminate(&tail));
    assert_string_equal(tail.data, "{\"level\":\"WARN\"}\n{\"level\":\"ERROR\"}\nEND\n");
}

static void test_a_framed_message_is_one_event(void **state)
{
    static const char bytes[] = "before\n\xa5\x5a\x00\x17\x00\x00\x00\x07\0\0\0\0\0\0\0\0a\nb\ncc\n"
                                "\xa5no frame\nlast";
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer tail = BUFFER_INIT;

    function_log_set_framed(fixture->stream);
    function_log_set_tail(fixture->stream, &tail);
    for (size_t i = 0; i < sizeof(bytes) - 1; i++)
        function_log_output(fixture->stream, span_of(bytes + i, 1), NOW);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    finish(fixture);
    assert_file(fixture, "1767225600123 7 before\n1767225600123 7 a\nb\ncc\n1767225600123 10 \xa5no frame\n"
                         "1767225600123 4 last\n1767225600123 4 END\n");
    assert_non_null(buffer_terminate(&tail));
    assert_string_equal(tail.data, "before\na\nb\ncc\n\xa5no frame\nlast\nEND\n");
}

static void test_a_frame_that_breaks_off_is_ended_by_the_service(void **state)
{
    static const char bytes[] = "\xa5\x5a\x00\x17\x00\x00\x00\x50\0\0\0\0\0\0\0\0half";
    struct fixture *fixture = *state;

    function_log_set_framed(fixture->stream);
    function_log_set_json(fixture->stream, LOG_LINE_ERROR);
    function_log_output(fixture->stream, span_of(bytes, sizeof(bytes) - 1), NOW);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    function_log_end_output(fixture->stream);
    function_log_output(fixture->stream, SPAN("{\"level\":\"ERROR\"}\n"), NOW);
    finish(fixture);
    assert_file(fixture, "1767225600123 4 half\n1767225600123 4 END\n1767225600123 18 {\"level\":\"ERROR\"}\n");
}

static void test_disk_that_refuses_costs_the_lines_only(void **state)
{
    struct fixture *fixture = *state;
    char path[PATH_MAX];
    CLEANUP(cleanup_close) int fd = -1;

    snprintf(path, sizeof(path), "%s/~aws~lambda~f", fixture->root); /* a file where the folder should be */
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    flood(fixture, 2 * 1024 * 1024);
    assert_true(function_log_is_full(fixture->stream));
    while (!fixture->rooms)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    assert_true(function_log_lost_bytes(fixture->log) > 1024 * 1024);
}

static void remove_obstacle(struct fixture *fixture)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/~aws~lambda~f", fixture->root);
    assert_int_equal(unlink(path), 0);
}

/* Lets a line that cannot be written get lost. */
static void lose(struct fixture *fixture, struct span line)
{
    CLEANUP(cleanup_close) int fd = -1;
    char path[PATH_MAX];
    uint64_t before = function_log_lost_bytes(fixture->log);
    uv_timer_t timer;

    uv_timer_init(&fixture->loop, &timer);
    uv_timer_start(&timer, on_late, 60000, 0); /* keeps the loop going */
    snprintf(path, sizeof(path), "%s/~aws~lambda~f", fixture->root);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    function_log_output(fixture->stream, line, NOW);
    while (function_log_lost_bytes(fixture->log) == before)
        assert_int_not_equal(uv_run(&fixture->loop, UV_RUN_ONCE), 0);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
}

static void test_what_was_lost_is_said_in_front_of_what_comes_next(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer content = BUFFER_INIT;
    struct log_record record;
    struct span rest;

    lose(fixture, SPAN("one\ntwo\n"));
    lose(fixture, SPAN("three\n"));
    remove_obstacle(fixture);
    function_log_line(fixture->stream, SPAN("END\n"), NOW);
    finish(fixture);
    content = read_file(fixture);
    rest = buffer_span(&content);
    assert_int_equal(log_record_parse(&rest, &record), 0);
    assert_true(span_equal(record.message, SPAN("Kiln: 3 lines (62 bytes) of this log were lost: Not a directory\n")));
    assert_int_equal(log_record_parse(&rest, &record), 0);
    assert_true(span_equal(record.message, SPAN("END\n")));
    assert_int_equal(rest.length, 0);
}

static void test_in_json_what_was_lost_is_an_event(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer content = BUFFER_INIT;

    function_log_set_json(fixture->stream, LOG_LINE_INFO);
    lose(fixture, SPAN("one\n"));
    remove_obstacle(fixture);
    function_log_line(fixture->stream, SPAN("{}\n"), NOW);
    finish(fixture);
    content = read_file(fixture);
    assert_non_null(buffer_terminate(&content));
    assert_non_null(strstr(content.data, "\"type\":\"platform.logsDropped\",\"record\":{\"reason\":\"Not a directory\","
                                         "\"droppedRecords\":1,\"droppedBytes\":20}}\n"));
}

static void test_partly_written_flush_is_taken_back(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit before, small;
    CLEANUP(buffer_deinit) struct buffer content = BUFFER_INIT;
    struct log_record record;
    struct span rest;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    flood(fixture, 256 * 1024);
    finish(fixture);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    content = read_file(fixture);
    assert_in_range(content.length, 1, 100000); /* the second, smaller flush fits */
    rest = buffer_span(&content);
    while (log_record_parse(&rest, &record) == 0)
        ;
    assert_int_equal(rest.length, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_nothing_is_written_before_the_flush_and_all_after),
        CASE(test_timer_flushes_by_itself),
        CASE(test_output_is_cut_into_lines_whatever_its_pieces),
        CASE(test_endless_line_is_cut_at_the_event_limit),
        CASE(test_tail_keeps_the_last_4_kb),
        CASE(test_tail_ends_a_line_that_was_cut_at_its_full_length),
        CASE(test_full_stream_gets_room_once_written),
        CASE(test_stream_closed_during_a_write_loses_nothing),
        CASE(test_output_below_the_level_is_in_neither_file_nor_tail),
        CASE(test_a_framed_message_is_one_event),
        CASE(test_a_frame_that_breaks_off_is_ended_by_the_service),
        CASE(test_disk_that_refuses_costs_the_lines_only),
        CASE(test_what_was_lost_is_said_in_front_of_what_comes_next),
        CASE(test_in_json_what_was_lost_is_an_event),
        CASE(test_partly_written_flush_is_taken_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
