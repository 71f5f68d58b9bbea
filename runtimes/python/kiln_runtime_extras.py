"""What the runtime needs for some functions only, and so imports late: error reports and the logging module."""

import os
import sys
import time
import traceback

RUNTIME_DIR = os.path.dirname(os.path.abspath(__file__))
NO_BREAK_SPACE = "\u00a0"  # indentation in the log, as the service writes it


IS_JSON = os.environ.get("AWS_LAMBDA_LOG_FORMAT", "").upper() == "JSON"
log_fd = None  # set by kiln_runtime, where the service gave it
# The levels of logging, as a frame's type has them.
FRAME_LEVELS = {10: 0b01000, 20: 0b01100, 30: 0b10000, 40: 0b10100, 50: 0b11000}


def write_log(text, level):
    """One message as one event of the log: in a frame where the service takes those, else as lines of standard output.

    A frame is its type (0xa55a0002 for JSON, 0xa55a0003 for text, with the level), the message's length, the time in
    microseconds, and the message.
    """
    if log_fd is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    sys.stdout.flush()
    message = text.encode("utf-8", "backslashreplace")
    kind = 0xA55A0002 if IS_JSON else 0xA55A0003
    frame = b"".join([(kind | FRAME_LEVELS.get(level // 10 * 10, 0)).to_bytes(4, "big"),
                      len(message).to_bytes(4, "big"), (time.time_ns() // 1000).to_bytes(8, "big"), message])
    while frame:
        frame = frame[os.write(int(log_fd), frame):]


def report(error, request_id):
    """Writes the error to the log as the service does, and returns the object for the Runtime API."""
    if hasattr(error, "kind"):
        result = error_object(str(error), error.kind, error.trace, request_id)
    else:
        result = error_object(str(error), type(error).__name__, stack_trace(error), request_id)
    try:
        write_log(json_line(result) if IS_JSON else "\n".join(log_lines(result)), 40)
    except (AttributeError, OSError, ValueError):
        pass  # standard output is closed: the function's own affair
    return result


def error_object(message, error_type, trace, request_id):
    return {"errorMessage": message, "errorType": error_type, "requestId": request_id, "stackTrace": trace or []}


def stack_trace(error):
    """Formatted entries of the function's own frames: the runtime's, which come first, are left out."""
    frames = [(frame.filename, frame.lineno, frame.name, frame.line)
              for frame in traceback.extract_tb(error.__traceback__)]
    while len(frames) > 1 and os.path.dirname(os.path.abspath(frames[0][0])) == RUNTIME_DIR:
        del frames[0]
    return traceback.format_list(frames)


def log_lines(result):
    yield "[ERROR] %s: %s" % (result["errorType"], result["errorMessage"]) if result["errorMessage"] else \
        "[ERROR] %s" % result["errorType"]
    yield "Traceback (most recent call last):"
    for entry in result["stackTrace"]:
        for line in entry.splitlines():
            text = line.lstrip(" ")
            yield NO_BREAK_SPACE * (len(line) - len(text)) + text


def json_line(result):
    import json

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"timestamp": when, "level": "ERROR", **result}, ensure_ascii=False)


class SetUpAfterLoading:
    """A loader that loads by another one and then sets the root logger up."""

    def __init__(self, loader, request):
        self.loader = loader
        self.request = request

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if hasattr(module, "Handler") and hasattr(module, "getLogger"):  # not a module of the function's own
            set_root_handler(module, self.request)


def with_root_handler(spec, request):
    spec.loader = SetUpAfterLoading(spec.loader, request)
    return spec


# What a LogRecord has by itself: everything else came with `extra`.
RECORD_FIELDS = {"name", "msg", "args", "levelname", "levelno", "pathname", "filename", "module", "exc_info", "exc_text",
                 "stack_info", "lineno", "funcName", "created", "msecs", "relativeCreated", "thread", "threadName",
                 "processName", "process", "taskName", "aws_request_id", "tenant_id"}


def format_json(record, logging):
    """The record as a line of JSON: the members of the service, then what the caller gave as `extra`."""
    import json

    number = min(50, max(0, record.levelno)) // 10 * 10
    fields = {
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + ".%03dZ" % record.msecs,
        "level": logging.getLevelName(number),
        "message": record.getMessage(),
        "logger": record.name,
    }
    if record.exc_info:
        kind, error, trace = record.exc_info
        fields.update(stackTrace=traceback.format_tb(trace), errorType=kind.__name__ if kind else None,
                      errorMessage=str(error))
    fields["requestId"] = record.aws_request_id or None
    if record.exc_info:
        fields["location"] = "%s:%s:%s" % (record.pathname, record.funcName, record.lineno)
    fields["tenantId"] = record.tenant_id
    for name, value in record.__dict__.items():
        if name not in RECORD_FIELDS:
            fields.setdefault(name, value)
    return json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False) + "\n"


def set_root_handler(logging, request):
    class JsonFormatter(logging.Formatter):
        def format(self, record):
            return format_json(record, logging)

    class LambdaLoggerHandler(logging.Handler):
        def emit(self, record):
            try:
                write_log(self.format(record), record.levelno)
            except Exception:
                self.handleError(record)

    class LambdaLoggerFilter(logging.Filter):
        def filter(self, record):
            record.aws_request_id = request.id
            record.tenant_id = request.tenant_id
            return True

    formatter = JsonFormatter() if IS_JSON else logging.Formatter(
        "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s\n", "%Y-%m-%dT%H:%M:%S")
    logging.Formatter.converter = time.gmtime
    handler = LambdaLoggerHandler()
    handler.setFormatter(formatter)
    handler.addFilter(LambdaLoggerFilter())
    root = logging.getLogger()
    root.addHandler(handler)
    level = os.environ.get("AWS_LAMBDA_LOG_LEVEL", "").upper()
    level = {"TRACE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL"}.get(level, level)
    if level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        root.setLevel(level)


def without_named_tuples(value):
    """The same with dicts in the place of named tuples, as the service's encoder has it. Must not be circular."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: without_named_tuples(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_named_tuples(item) for item in value]
    return value
