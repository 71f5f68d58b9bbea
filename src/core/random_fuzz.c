/* libFuzzer: every input is a program for core, see random_program.h. */
#include "core/random_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 4096)
        random_program_run(data, size);
    return 0;
}
