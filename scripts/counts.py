"""Reads what test runners wrote and says how many cases passed, failed and were skipped.

Each reader errs on the side of failure: a runner that died early, printed fewer cases than it planned, or left nothing
to read counts as one failed case more.
"""

import json
import re
from dataclasses import dataclass, field


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)  # names of what failed
    skips: list = field(default_factory=list)  # names of what was skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.skips += other.skips

    def fail(self, name):
        self.failed += 1
        self.failures.append(name)

    def skip(self, name):
        self.skipped += 1
        self.skips.append(name)

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return f"{text}, {self.skipped} skipped" if self.skipped else text


TAP_CASE = re.compile(r"^(not )?ok\b\s*\d*\s*(?:-\s*)?(.*)$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*(skip\b.*))?$", re.IGNORECASE)
TAP_SKIP = re.compile(r"#\s*skip\b", re.IGNORECASE)


def from_tap(text, program):
    """Cases of one program's TAP output. cmocka prints several plans, one for each group it runs."""
    counts = Counts()
    planned = None
    seen = 0
    for line in text.splitlines():
        plan = TAP_PLAN.match(line)
        if plan and plan.group(2):
            counts.skip(f"{program}: {plan.group(2)}")
        elif plan:
            planned = (planned or 0) + int(plan.group(1))
        elif line.startswith("Bail out!"):
            counts.fail(f"{program}: {line}")
        case = TAP_CASE.match(line)
        if not case:
            continue
        seen += 1
        name = f"{program}: {case.group(2)}"
        if TAP_SKIP.search(line):
            counts.skip(name)
        elif case.group(1):
            counts.fail(name)
        else:
            counts.passed += 1
    if planned is not None and seen < planned:
        counts.fail(f"{program}: planned {planned} cases, ran {seen}")
    return counts


def from_meson(testlog):
    """Cases of a meson-logs/testlog.json: one JSON object a line, one line a program."""
    counts = Counts()
    programs = 0
    for line in testlog.splitlines():
        if not line.strip():
            continue
        programs += 1
        program = json.loads(line)
        name = program["name"]
        result = program["result"]
        output = program.get("stdout", "")
        ran = from_tap(output, name) if re.search(r"^(not )?ok\b|^1\.\.\d", output, re.MULTILINE) else Counts()
        if result == "SKIP" and not ran.skipped:
            ran.skip(name)
        elif result in ("OK", "EXPECTEDFAIL") and not ran.passed + ran.failed + ran.skipped:
            ran.passed += 1
        elif result not in ("OK", "EXPECTEDFAIL", "SKIP") and not ran.failed and not only_skips(program, ran):
            ran.fail(f"{name}: {result}, return code {program.get('returncode')}")
        counts.add(ran)
    if not programs:
        counts.fail("meson ran no test program")
    return counts


def only_skips(program, ran):
    """cmocka writes a skipped case as "not ok N # SKIP", which Meson takes for a failure though the program exits 0."""
    return ran.skipped > 0 and program.get("returncode") == 0 and program["result"] in ("FAIL", "ERROR")


def from_node(tap):
    """Cases of the TAP report of Node's test runner, whose closing comments sum it up."""
    counts = Counts()
    totals = {key: int(value) for key, value in re.findall(r"^# (\w+) (\d+)", tap, re.MULTILINE)}
    if "pass" not in totals:
        counts.fail("node's test runner wrote no summary")
        return counts
    counts.passed = totals["pass"]
    counts.failed = totals["fail"] + totals.get("cancelled", 0)
    counts.skipped = totals.get("skipped", 0) + totals.get("todo", 0)
    counts.failures = re.findall(r"^ *not ok \d+ - ((?:(?!# (?:SKIP|TODO)).)*)$", tap, re.MULTILINE)
    counts.skips = re.findall(r"^ *(?:not )?ok \d+ - (.*# (?:SKIP|TODO).*)$", tap, re.MULTILINE)
    if not counts.passed + counts.failed + counts.skipped:
        counts.fail("node's test runner ran no test")
    return counts


def from_unittest(text):
    """Cases of a run of Python's unittest."""
    counts = Counts()
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    if not ran:
        counts.fail("unittest wrote no summary")
        return counts
    details = {key: int(value) for key, value in re.findall(r"(failures|errors|skipped)=(\d+)", text)}
    counts.failed = details.get("failures", 0) + details.get("errors", 0)
    counts.skipped = details.get("skipped", 0)
    counts.passed = int(ran.group(1)) - counts.failed - counts.skipped
    counts.failures = re.findall(r"^(?:FAIL|ERROR): (.*)$", text, re.MULTILINE)
    if not counts.passed + counts.failed + counts.skipped:
        counts.fail("unittest ran no test")
    return counts
