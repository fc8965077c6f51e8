//! Counting tests in what test runners print.

use std::ops::Add;

/// Tests that passed and tests that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Count {
    /// One failure.
    pub(crate) const FAILURE: Self = Self {
        passed: 0,
        failed: 1,
    };
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
        }
    }
}

/// Sums up the result lines of nextest (`Summary [ 1.2s] 3 tests run: 3 passed, 0 skipped`), or, if
/// there are none, those of cargo test (`test result: ok. 3 passed; 0 failed; ...`): nextest shows
/// the whole output of a failed test, and with it a result line that would count twice.
pub(crate) fn count(text: &str) -> Count {
    let is_summary = |line: &&str| line.trim_start().starts_with("Summary [");
    let is_result = |line: &&str| line.starts_with("test result: ");
    let sum = |lines: &mut dyn Iterator<Item = &str>| {
        lines.map(count_line).fold(Count::default(), Count::add)
    };
    if text.lines().any(|line| is_summary(&line)) {
        sum(&mut text.lines().filter(is_summary))
    } else {
        sum(&mut text.lines().filter(is_result))
    }
}

fn count_line(line: &str) -> Count {
    let words: Vec<&str> = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    let mut count = Count::default();
    for pair in words.windows(2) {
        let [number, word] = pair else { continue };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match *word {
            "passed" => count.passed += number,
            // nextest: `1 timed out`, `1 exec failed`.
            "failed" | "timed" | "exec" => count.failed += number,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_test_prints_a_line_per_binary() {
        let text = "running 2 tests\ntest a ... ok\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
            test result: FAILED. 5 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(
            count(text),
            Count {
                passed: 7,
                failed: 3
            }
        );
    }

    #[test]
    fn nextest_prints_one_summary() {
        let cases = [
            (
                "     Summary [   0.123s] 12 tests run: 12 passed, 0 skipped",
                12,
                0,
            ),
            (
                "     Summary [   9.1s] 12/20 tests run: 9 passed (2 slow), 2 failed, 1 timed out, 3 skipped",
                9,
                3,
            ),
            (
                "     Summary [   9.1s] 2 tests run: 1 passed (1 leaky), 1 exec failed, 0 skipped",
                1,
                1,
            ),
        ];
        for (line, passed, failed) in cases {
            assert_eq!(count(line), Count { passed, failed }, "{line}");
        }
    }

    #[test]
    fn the_output_of_a_failed_test_does_not_count_again() {
        let text = "        FAIL [ 0.2s] crate test\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out\n     \
            Summary [ 65.1s] 556 tests run: 555 passed, 1 failed, 0 skipped\n";
        assert_eq!(
            count(text),
            Count {
                passed: 555,
                failed: 1
            }
        );
    }

    #[test]
    fn other_lines_do_not_count() {
        assert_eq!(
            count("3 passed, 1 failed\n  Compiling x\n"),
            Count::default()
        );
    }
}
