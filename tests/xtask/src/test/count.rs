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

/// Sums up the result lines of cargo test (`test result: ok. 3 passed; 0 failed; ...`) and of
/// nextest (`Summary [ 1.2s] 3 tests run: 3 passed (1 slow), 0 skipped`).
pub(crate) fn count(text: &str) -> Count {
    text.lines()
        .filter(|line| is_result(line))
        .map(count_line)
        .fold(Count::default(), Count::add)
}

fn is_result(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("test result: ") || line.starts_with("Summary [")
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
    fn other_lines_do_not_count() {
        assert_eq!(
            count("3 passed, 1 failed\n  Compiling x\n"),
            Count::default()
        );
    }
}
