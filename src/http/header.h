/* One header field, as the server and the client both use it: borrowed spans, the name as sent or to be sent. */
#pragma once

#include "base/span.h"

struct http_header {
    struct span name;
    struct span value;
};
