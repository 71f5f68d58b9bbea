/* Whatever arrives at the launcher or an init: decoding stays inside the datagram, and what it accepts is well formed.
 */
#include "sandbox/protocol.h"

#include <assert.h>

static void check_create(uint64_t id, struct message_reader reader)
{
    struct sandbox_spec spec;

    if (message_decode_create(id, &reader, &spec) == 0)
        assert(spec.task_dir[0] == '/' && spec.memory_mib > 0 && spec.id != 0);
}

static void check_run(struct message_reader reader)
{
    static struct message_process process; /* large */
    size_t argc = 0;

    if (message_decode_run(&reader, &process) < 0)
        return;
    while (process.argv[argc])
        argc++;
    assert(argc > 0 && argc + process.envc <= MESSAGE_STRINGS_MAX && !process.envp[process.envc]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message_header header;
    struct message_reader reader, copy;
    struct message_exit exit;
    struct fault fault = {0};

    if (message_open(data, size, &header, &reader) < 0)
        return 0;
    check_create(header.id, reader);
    check_run(reader);
    copy = reader;
    (void)!message_decode_exit(&copy, &exit);
    copy = reader;
    (void)!message_decode_failed(&copy, &fault);
    return 0;
}
