"""Runs a function written in Python: a client of the Lambda Runtime API (version 2018-06-01).

Started by bootstrap.py with AWS_LAMBDA_RUNTIME_API, _HANDLER and LAMBDA_TASK_ROOT set. What a caller or a log reader can
see follows AWS's own runtime.

Every millisecond spent here is part of each cold start, so that only what every invocation needs is in this file and only
modules that cost next to nothing are imported: `json` alone (it pulls in `re` and `enum`) would cost more than the
whole interpreter's start; its C accelerator does not. What only some functions need is in kiln_runtime_extras.py. With
-S the interpreter skips `site`, which costs as much again where packages have left .pth files; the parts of it that
functions rely on are made up for here.
"""

import builtins
import os
import sys
import time

import _socket

API_PREFIX = "/2018-06-01/runtime/"
RUNTIME_DIR = os.path.dirname(os.path.abspath(__file__))
SEND_TOGETHER_BYTES = 65536  # a body up to this goes out in one piece with its head


class Fault(Exception):
    """A failure that the runtime itself names, such as Runtime.ImportModuleError."""

    def __init__(self, kind, message, trace=None):
        super().__init__(message)
        self.kind = "Runtime." + kind
        self.trace = trace


class RuntimeApi:
    """HTTP/1.1 over one kept-alive connection, opened again when the other side has closed it in between."""

    def __init__(self, address):
        self.address = address
        host, _, port = address.rpartition(":")
        self.peer = (host, int(port))
        self.socket = None
        self.received = b""  # past the last answer
        head = "GET %sinvocation/next HTTP/1.1\r\nHost: %s\r\n\r\n" % (API_PREFIX, address)
        self.next_request = head.encode("latin-1")
        self.next_is_asked = False

    def connect(self):
        self.socket = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        self.socket.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        self.socket.connect(self.peer)

    def close(self):
        self.socket.close()
        self.socket = None
        self.received = b""

    def next(self):
        """The next event. Where the result before it has asked for it, only waits, as long as the connection holds."""
        if self.next_is_asked:
            self.next_is_asked = False
            if self.socket is not None and self.is_answered():
                return self.receive()
        return self.exchange(self.next_request)

    def post(self, path, body, content_type="application/json", error_type=None, asks_next=False):
        """With `asks_next`, the request for the next event goes out in one piece with a small body.

        Not so with a large one: its refusal may end the connection.
        """
        head = "POST %s%s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n" % (
            API_PREFIX, path, self.address, content_type, len(body))
        if error_type:
            head += "Lambda-Runtime-Function-Error-Type: %s\r\n" % error_type
        head = (head + "\r\n").encode("latin-1", "replace")
        if len(body) > SEND_TOGETHER_BYTES:
            return self.exchange(head, body)
        self.next_is_asked = asks_next
        return self.exchange(head + body + (self.next_request if asks_next else b""))

    def exchange(self, *pieces):
        """(status, headers with lower-case names, body). OSError when the Runtime API is gone."""
        if self.socket is None or not self.is_answered(*pieces):
            self.connect()
            for piece in pieces:
                self.socket.sendall(piece)
        return self.receive()

    def is_answered(self, *pieces):
        """Sends and waits for the answer to begin. If the connection ends instead, closes it."""
        try:
            for piece in pieces:
                self.socket.sendall(piece)
            self.received = self.received or self.socket.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            self.received = b""
        if self.received:
            return True
        self.close()
        return False

    def receive(self):
        first, *lines = self.take_line(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self.take_chunks()
        else:
            body = self.take(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(first.split(" ", 2)[1]), headers, body

    def take_line(self, end=b"\r\n"):
        while end not in self.received:
            self.received += self.more()
        line, _, self.received = self.received.partition(end)
        return line

    def take(self, length):
        taken = self.received[:length]
        self.received = self.received[length:]
        if len(taken) == length:
            return taken
        body = bytearray(length)
        filled = len(taken)
        body[:filled] = taken
        view = memoryview(body)
        while filled < length:
            count = self.socket.recv_into(view[filled:])
            if not count:
                raise ConnectionError("the Runtime API closed the connection")
            filled += count
        return body

    def take_chunks(self):
        body = b""
        while True:
            size = int(self.take_line().split(b";")[0], 16)
            if not size:
                break
            body += self.take(size)
            self.take(2)
        while self.take_line():
            pass  # a trailer
        return body

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the Runtime API closed the connection")
        return data


class Scanning:
    """What _json.make_scanner wants to be told: the settings of json.loads."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__
    memo = {}


class Json:
    """json.loads and json.dumps by the C code that they use themselves, without importing `json`."""

    def __init__(self, ensure_ascii):
        self.ensure_ascii = ensure_ascii
        self.decimal_mark = None  # stands in front of a Decimal's digits until they are freed of their quotes
        try:
            import _json

            self.scan = _json.make_scanner(Scanning)
            self.encode_string = _json.encode_basestring_ascii if ensure_ascii else _json.encode_basestring
            self.make_encoder = _json.make_encoder
            self.make_encoder({}, self.default, self.encode_string, None, ": ", ", ", False, False, True)
        except (ImportError, AttributeError, TypeError):
            self.scan = self.make_encoder = None

    def loads(self, data):
        """Takes bytes. Anything out of the ordinary goes the long way, for its exceptions as well."""
        if self.scan:
            try:
                text = str(data, "utf-8").strip(" \t\n\r")
                value, end = self.scan(text, 0)
                if end == len(text):
                    return value
            except (StopIteration, ValueError):
                pass
        import json

        return json.loads(bytes(data))

    def dumps(self, value):
        """Bytes. Lone surrogates, which UTF-8 cannot carry, become \\u escapes."""
        text = self.encode(value)
        if isinstance(value, (dict, list, tuple)) and named_tuples_exist():
            text = self.encode(extras().without_named_tuples(value))  # not circular: it has been encoded once
        if self.decimal_mark and self.decimal_mark in text:
            first, *others = text.split('"' + self.decimal_mark)
            text = first + "".join(part.replace('"', "", 1) for part in others)
        return text.encode("utf-8", "backslashreplace")

    def encode(self, value):
        if self.make_encoder and type(value) is str:
            return self.encode_string(value)
        if self.make_encoder:
            encode = self.make_encoder({}, self.default, self.encode_string, None, ": ", ", ", False, False, True)
            return "".join(encode(value, 0))
        import json

        return json.dumps(value, default=self.default, ensure_ascii=self.ensure_ascii)

    def default(self, value):
        if isinstance(value, bytes):
            return value.decode("utf-8")  # within a result: as the service's encoder has it
        decimal = sys.modules.get("decimal")
        if decimal and isinstance(value, decimal.Decimal):
            if value.is_nan():
                return float("nan")
            if not self.decimal_mark:
                self.decimal_mark = os.urandom(16).hex()
            return self.decimal_mark + str(value)
        raise TypeError("Object of type %s is not JSON serializable" % value.__class__.__name__)


class CognitoIdentity:
    __slots__ = ["cognito_identity_id", "cognito_identity_pool_id"]

    def __init__(self, values):
        fill(self, values)

    __repr__ = lambda self: describe(self, self.__slots__)


class Client:
    __slots__ = ["installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name"]

    def __init__(self, values):
        fill(self, values)

    __repr__ = lambda self: describe(self, self.__slots__)


class ClientContext:
    __slots__ = ["custom", "env", "client"]

    def __init__(self, values):
        fill(self, values)
        if self.client is not None:
            self.client = Client(self.client)

    __repr__ = lambda self: describe(self, self.__slots__)


class LambdaContext:
    def __init__(self, headers, json):
        get = os.environ.get
        self.aws_request_id = headers["lambda-runtime-aws-request-id"]
        self.log_group_name = get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.function_name = get("AWS_LAMBDA_FUNCTION_NAME")
        self.memory_limit_in_mb = get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        self.function_version = get("AWS_LAMBDA_FUNCTION_VERSION")
        self.invoked_function_arn = headers.get("lambda-runtime-invoked-function-arn")
        self.tenant_id = headers.get("lambda-runtime-aws-tenant-id")
        client = parse_header(headers, "lambda-runtime-client-context", "Client Context", json)
        self.client_context = None if client is None else ClientContext(client)
        identity = parse_header(headers, "lambda-runtime-cognito-identity", "Cognito Identity", json) or {}
        self.identity = CognitoIdentity({"cognito_identity_id": identity.get("cognitoIdentityId"),
                                         "cognito_identity_pool_id": identity.get("cognitoIdentityPoolId")})
        self._epoch_deadline_time_in_ms = int(headers.get("lambda-runtime-deadline-ms", 0))

    def get_remaining_time_in_millis(self):
        return max(0, self._epoch_deadline_time_in_ms - int(time.time() * 1000))

    def log(self, message):
        sys.stdout.write(str(message))

    def __repr__(self):
        return describe(self, ["aws_request_id", "log_group_name", "log_stream_name", "function_name",
                               "memory_limit_in_mb", "function_version", "invoked_function_arn", "client_context",
                               "identity", "tenant_id"])


def fill(target, values):
    for name in target.__slots__:
        setattr(target, name, values.get(name))


def describe(target, names):
    return "%s([%s])" % (type(target).__name__, ",".join("%s=%s" % (name, getattr(target, name)) for name in names))


def parse_header(headers, header, title, json):
    text = headers.get(header)
    if not text:
        return None
    try:
        # HTTP headers are read as Latin-1; the JSON in them is UTF-8.
        return json.loads(text.encode("latin-1"))
    except Exception as error:
        raise Fault("LambdaContextUnmarshalError", "Unable to parse %s JSON: %s" % (title, error)) from None


def find_handler(handler):
    """The function that _HANDLER names: "module.function", with "/" or "." between packages."""
    try:
        module_name, function_name = handler.rsplit(".", 1)
    except ValueError as error:
        raise Fault("MalformedHandlerName", "Bad handler '%s': %s" % (handler, error)) from None
    if module_name.split(".")[0] in sys.builtin_module_names:
        raise Fault("BuiltInModuleConflict", "Cannot use built-in module %s as a handler module" % module_name)
    import importlib

    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except ImportError as error:
        raise Fault("ImportModuleError", "Unable to import module '%s': %s" % (module_name, error)) from None
    except SyntaxError as error:
        trace = ['  File "%s" Line %s\n    %s' % (error.filename, error.lineno, error.text)]
        raise Fault("UserCodeSyntaxError", "Syntax error in module '%s': %s" % (module_name, error), trace) from None
    try:
        return getattr(module, function_name)
    except AttributeError:
        raise Fault("HandlerNotFound", "Handler '%s' missing on module '%s'" % (function_name, module_name)) from None


def invoke(function, headers, body, json):
    """(body, content type) of the response, or the exception of a Fault or of the function itself."""
    context = LambdaContext(headers, json)
    try:
        event = json.loads(body)
    except Exception as error:
        raise Fault("UnmarshalError", "Unable to unmarshal input: %s" % error) from None
    response = function(event, context)
    if isinstance(response, bytes):
        return response, "application/unknown"
    try:
        return json.dumps(response), "application/json"
    except Exception as error:
        raise Fault("MarshalError", "Unable to marshal response: %s" % error) from None


# Modules that come with named tuples which no function returns.
WITHOUT_RESULTS = ("functools", "tokenize", "dis", "inspect", "selectors")


def named_tuples_exist():
    """Whether a result may have named tuples in it. The service's encoder makes objects of them, C's json arrays."""
    return any(hasattr(kind, "_asdict") and kind.__module__ not in WITHOUT_RESULTS for kind in tuple.__subclasses__())


def extras():
    import kiln_runtime_extras

    kiln_runtime_extras.log_fd = request.log_fd
    return kiln_runtime_extras


def set_trace_id(trace_id):
    if trace_id:
        os.environ["_X_AMZN_TRACE_ID"] = trace_id
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)


def flush_output():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # replaced or closed by the function: its own affair


def set_paths():
    """The function's code first, then layers, then the interpreter's own; as on AWS, packages of the host come last."""
    version = "python%d.%d" % sys.version_info[:2]
    task_root = os.environ.get("LAMBDA_TASK_ROOT", "/var/task")
    sys.path[:1] = [task_root, "/opt/python/lib/%s/site-packages" % version, "/opt/python"]
    if sys.flags.no_site:
        import _sitebuiltins

        builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
        builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
        builtins.help = _sitebuiltins._Helper()
        for folder in ("/usr/local/lib/%s/dist-packages" % version, "/usr/lib/python3/dist-packages",
                       "%s/lib/%s/site-packages" % (sys.prefix, version)):
            if os.path.isdir(folder):
                sys.path.append(folder)
    sys.path.append(RUNTIME_DIR)


def forget_locale():
    """Before Python 3.12 the service's own system has the locale of LANG. Where it lacks, Python says so in LC_CTYPE."""
    with open("/proc/self/environ", "rb") as given:
        if b"LC_CTYPE=" not in given.read():
            os.environ.pop("LC_CTYPE", None)


class WatchForLogging:
    """Finds every module the usual way, but when the function imports `logging`, sets up its root logger as on AWS."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "logging":
            return None
        sys.meta_path.remove(cls)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec:
                return extras().with_root_handler(spec, request)
        return None


class Request:
    """Whose turn it is, for the log, and where the log takes frames."""

    id = ""
    tenant_id = None
    log_fd = None


request = Request()


def main():
    try:
        run()
    except OSError as error:
        sys.exit("bootstrap.py: %s" % error)


def run():
    # UTF-8 whatever the locale, and a line at a time, so that the log is complete up to the moment of a crash.
    sys.stdout.reconfigure(encoding="utf-8", line_buffering=True)
    sys.stderr.reconfigure(encoding="utf-8", line_buffering=True)
    set_paths()
    is_old = os.environ.get("AWS_EXECUTION_ENV", "")[len("AWS_Lambda_python"):] in ("3.8", "3.9", "3.10", "3.11")
    if is_old:
        forget_locale()
    json = Json(ensure_ascii=is_old)
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    api.connect()  # before a function that closes its standard output makes room for it in the wrong place
    request.log_fd = os.environ.pop("_LAMBDA_TELEMETRY_LOG_FD", None)
    if "logging" in sys.modules:
        extras().set_root_handler(sys.modules["logging"], request)
    else:
        sys.meta_path.insert(0, WatchForLogging)

    try:
        function = find_handler(os.environ["_HANDLER"])
    except Exception as error:
        result = extras().report(error, "")
        flush_output()
        api.post("init/error", json.dumps(result), error_type=result["errorType"])
        sys.exit(1)

    while True:
        flush_output()
        status, headers, body = api.next()
        if status != 200:
            sys.exit("bootstrap.py: the Runtime API answered %d to invocation/next" % status)
        request.id = headers["lambda-runtime-aws-request-id"]
        request.tenant_id = headers.get("lambda-runtime-aws-tenant-id")
        set_trace_id(headers.get("lambda-runtime-trace-id"))
        path = "invocation/%s/" % request.id
        try:
            response, content_type = invoke(function, headers, body, json)
        except Exception as error:
            result = extras().report(error, request.id)
            del error
            flush_output()
            status, _, _ = api.post(path + "error", json.dumps(result), error_type=result["errorType"], asks_next=True)
        else:
            flush_output()
            status, _, _ = api.post(path + "response", response, content_type, asks_next=True)
            del response
        if status >= 500:
            sys.exit("bootstrap.py: the Runtime API answered %d to the result of the invocation" % status)
