"""What the runtime needs for some functions only, and so imports late: error reports and the logging module."""

import os
import sys
import time
import traceback

RUNTIME_DIR = os.path.dirname(os.path.abspath(__file__))
NO_BREAK_SPACE = "\u00a0"  # indentation in the log, as the service writes it


def report(error, request_id):
    """Writes the error to the log as the service does, and returns the object for the Runtime API."""
    if hasattr(error, "kind"):
        result = error_object(str(error), error.kind, error.trace, request_id)
    else:
        result = error_object(str(error), type(error).__name__, stack_trace(error), request_id)
    sys.stdout.write("\n".join(log_lines(result)) + "\n")
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


def set_root_handler(logging, request):
    class LambdaLoggerHandler(logging.Handler):
        def emit(self, record):
            try:
                sys.stdout.write(self.format(record))
            except Exception:
                self.handleError(record)

    class LambdaLoggerFilter(logging.Filter):
        def filter(self, record):
            record.aws_request_id = request.id
            return True

    formatter = logging.Formatter("[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s\n",
                                  "%Y-%m-%dT%H:%M:%S")
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
