/* Prints its real and effective user and group: what a setuid bit would change. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    printf("%u %u %u %u\n", getuid(), geteuid(), getgid(), getegid());
    return 0;
}
