"""A result that hides a failure would make every other test worthless."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import counts

HERE = Path(__file__).resolve().parent


def program(**members):
    return json.dumps({"name": "t", "result": "OK", "returncode": 0, "stdout": "", **members}) + "\n"


class Tap(unittest.TestCase):
    def test_counts_passes_failures_and_skips(self):
        result = counts.from_tap("1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no root\n", "t")
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 1, 1))
        self.assertEqual(result.failures, ["t: b"])

    def test_program_that_dies_before_its_plan_is_done_counts_as_failed(self):
        result = counts.from_tap("1..3\nok 1 - a\n", "t")
        self.assertEqual((result.passed, result.failed), (1, 1))

    def test_bail_out_counts_as_failed(self):
        self.assertEqual(counts.from_tap("1..1\nBail out! no memory\n", "t").failed, 2)

    def test_plans_of_several_groups_add_up(self):
        result = counts.from_tap("1..1\nok 1 - a\n1..1\nok 1 - b\n", "t")
        self.assertEqual((result.passed, result.failed), (2, 0))

    def test_skipped_program_is_counted(self):
        self.assertEqual(counts.from_tap("1..0 # SKIP rootless only\n", "t").skipped, 1)


class Meson(unittest.TestCase):
    def test_subtests_are_counted_not_programs(self):
        result = counts.from_meson(program(stdout="1..2\nok 1 - a\nok 2 - b\n"))
        self.assertEqual((result.passed, result.failed), (2, 0))

    def test_failing_subtest_is_counted_once(self):
        result = counts.from_meson(program(result="FAIL", returncode=1, stdout="1..2\nok 1 - a\nnot ok 2 - b\n"))
        self.assertEqual((result.passed, result.failed), (1, 1))

    def test_sanitizer_abort_after_all_subtests_counts_as_failed(self):
        result = counts.from_meson(program(result="ERROR", returncode=-6, stdout="1..1\nok 1 - a\n"))
        self.assertEqual((result.passed, result.failed), (1, 1))

    def test_timeout_without_output_counts_as_failed(self):
        self.assertEqual(counts.from_meson(program(result="TIMEOUT", returncode=-9)).failed, 1)

    def test_no_program_counts_as_failed(self):
        self.assertEqual(counts.from_meson("").failed, 1)

    def test_cmocka_skip_is_a_skip(self):
        result = counts.from_meson(program(result="FAIL", stdout="1..2\nok 1 - a\nnot ok 2 # SKIP b\n"))
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 0, 1))


class Node(unittest.TestCase):
    def test_totals_are_read_and_cancelled_counts_as_failed(self):
        tap = "not ok 1 - x\n# tests 4\n# pass 1\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n"
        result = counts.from_node(tap)
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 2, 1))
        self.assertEqual(result.failures, ["x"])

    def test_missing_summary_counts_as_failed(self):
        self.assertEqual(counts.from_node("ok 1 - x\n").failed, 1)

    def test_no_test_counts_as_failed(self):
        self.assertEqual(counts.from_node("# pass 0\n# fail 0\n").failed, 1)


class Unittest(unittest.TestCase):
    def test_failures_and_errors_are_taken_off_the_total(self):
        result = counts.from_unittest("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)\n")
        self.assertEqual((result.passed, result.failed, result.skipped), (2, 2, 1))


class Layers(unittest.TestCase):
    def check(self, folder, line):
        with tempfile.TemporaryDirectory() as root:
            source = Path(root, "src", folder, "x.c")
            source.parent.mkdir(parents=True)
            source.write_text(line + "\n")
            return subprocess.run([sys.executable, HERE / "check-layers", Path(root, "src")],
                                  stdout=subprocess.PIPE, text=True)

    def test_downward_include_passes(self):
        self.assertEqual(self.check("core", '#include "base/span.h"').returncode, 0)

    def test_upward_include_is_refused(self):
        done = self.check("http", '#include "aws/sigv4.h"')
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/http/x.c:1: http may not include aws/sigv4.h", done.stdout)

    def test_upward_include_with_a_reason_passes(self):
        self.assertEqual(self.check("http", '#include "aws/sigv4.h" /* upward: a type alone */').returncode, 0)

    def test_database_outside_store_is_refused(self):
        self.assertEqual(self.check("api", "#include <sqlite3.h>").returncode, 1)

    def test_clock_in_core_is_refused(self):
        self.assertEqual(self.check("core", "#include <time.h>").returncode, 1)


if __name__ == "__main__":
    unittest.main()
