/*
 * Preforked FastCGI workers: each takes one request at a time and echoes its body, as a function environment does.
 * Usage: fastcgi_echo SOCKET WORKERS
 */
#include <fcgiapp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int socket)
{
    static char body[65536];
    FCGX_Request request;

    FCGX_InitRequest(&request, socket, 0);
    while (FCGX_Accept_r(&request) == 0) {
        int length = FCGX_GetStr(body, sizeof(body), request.in);
        FCGX_FPrintF(request.out, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", length);
        FCGX_PutStr(body, length, request.out);
        FCGX_Finish_r(&request);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    int socket;

    if (argc != 3 || FCGX_Init() != 0)
        return 2;
    socket = FCGX_OpenSocket(argv[1], 1024);
    if (socket < 0)
        return 1;
    for (int i = atoi(argv[2]); i > 0; i--)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(socket);
        }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
