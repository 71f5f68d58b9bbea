/*
 * For the tests of http only: a server on a port of its own with a handler that does what the path says, and raw
 * client sockets driven from the same thread.
 *
 * Paths: /echo answers with the body; /park keeps the request in `parked`; /early answers 403 in on_headers;
 * /limit/N sets the body limit to N and echoes; /empty answers 204; /close answers with Connection: close;
 * /stream starts an answer and keeps the request in `parked`; /length likewise, with Content-Length: 10;
 * /pieces/N takes the body in pieces, of at most N bytes in all, and keeps the request in `parked` from its head on.
 */
#pragma once

#include "base/buffer.h"
#include "http/server.h"

#include <sys/un.h>

enum { PARKED_MAX = 1100 };

struct service {
    uv_loop_t loop;
    uv_timer_t tick; /* bounds each wait, so that conditions are looked at again */
    struct http_server *server;
    struct http_listener *listener;
    struct http_request *parked[PARKED_MAX];
    size_t parked_count;
    size_t heads;    /* calls of on_headers */
    size_t requests; /* of on_request */
    size_t gones;
    size_t drains;
    size_t accepts;
    bool refuses_accept;
    bool names_refusals;     /* refuse puts JSON, and the path into X-Refused */
    size_t gones_at_refusal; /* how many there had been at the last call of refuse */
    struct buffer pieces;    /* what came of a body in pieces */
    bool pauses_pieces;      /* after each piece */
    int unix_type;           /* of service_adopt's socket */
    struct sockaddr_un unix_address;
    socklen_t unix_length;
};

/* config.loop is filled in. Without `listens` there is a server alone. */
void service_start(struct service *service, const struct http_server_config *config, bool listens);
/* Adopts a listening Unix socket of that type; a service has one listener. SOCK_SEQPACKET tells writes apart. */
void service_adopt(struct service *service, int type, bool patient);
/* Frees the server, ends the loop and checks that nothing is left open. */
void service_stop(struct service *service);
/* One turn of the loop: at most a millisecond's wait. */
void service_turn(struct service *service);
uint16_t service_port(const struct service *service);
extern const struct http_handler service_handler;

/* How long something that must happen may take, in nanoseconds: for a machine that has much else to do. */
#define PATIENCE_NS UINT64_C(60000000000)

/* Turns the loop until `condition` holds; fails the test when patience ends. */
#define wait_until(service, condition)                      \
    do {                                                    \
        uint64_t end_ = uv_hrtime() + PATIENCE_NS;          \
        while (!(condition)) {                              \
            if (uv_hrtime() > end_)                         \
                fail_msg("still not true: %s", #condition); \
            service_turn(service);                          \
        }                                                   \
    } while (0)

/* Turns the loop for a while, for what must not happen. */
void service_linger(struct service *service, unsigned ms);

struct peer {
    int fd;
    struct buffer in; /* received and not yet read as a response */
    bool ended;       /* orderly end received */
    int error;        /* errno of the last failed send or receive */
};

/* Does not wait for the server: what is sent and received does. */
struct peer peer_connect(struct service *service);
struct peer peer_connect_unix(struct service *service);
struct peer peer_of_fd(int fd);
void peer_close(struct peer *peer);
/* Closes so that the other side gets a reset. */
void peer_reset(struct peer *peer);
/* Receives what is there, without waiting. */
void peer_receive(struct peer *peer);
/* Sends all, turning the loop as needed. False when the connection failed before. */
bool peer_send(struct service *service, struct peer *peer, struct span bytes);
bool peer_send_text(struct service *service, struct peer *peer, const char *text);

struct response {
    int status;
    struct buffer head; /* status line and fields */
    struct buffer body; /* decoded */
};

void response_deinit(struct response *response);
/* Waits for the next response. Fails the test without one. */
struct response peer_response(struct service *service, struct peer *peer);
/* The answer to a HEAD request. */
struct response peer_head_response(struct service *service, struct peer *peer);
/* 100 Continue. */
struct response peer_interim_response(struct service *service, struct peer *peer);
/* Waits for the end of the connection; true when it was orderly. */
bool peer_wait_end(struct service *service, struct peer *peer);
bool response_has(const struct response *response, const char *text);

/* The next response is a 200 with that body. */
void assert_echo(struct service *service, struct peer *peer, struct span expected);
/* Sends and checks the status; the response is dropped. */
void assert_answer(struct service *service, struct peer *peer, const char *request, int status);
