/* delegate DIRECTORY: marks a cgroup the way systemd does for a service with Delegate=yes. */
#include <stdio.h>
#include <sys/xattr.h>

int main(int argc, char **argv)
{
    if (argc == 2 && setxattr(argv[1], "user.delegate", "1", 1, 0) == 0)
        return 0;
    perror("delegate");
    return 1;
}
