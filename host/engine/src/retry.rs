//! Retry arithmetic (rules of Temporal's `common/backoff`).

use steadfast_model::{Millis, RetryPolicy};

/// The wait after attempt `attempt` (from 1) failed: `initial * coefficient^(attempt-1)`, at most
/// the maximum interval (100 times the first when not given), at most 100 years. Never overflows.
#[must_use]
pub fn interval(policy: &RetryPolicy, attempt: u32) -> Millis {
    let maximum = policy
        .maximum_interval
        .given()
        .unwrap_or(Millis(policy.initial_interval.0.saturating_mul(100)))
        .capped();
    // 50 bits after the point keep the fraction of a coefficient such as 1.001 over thousands of
    // steps. A value below the ceiling of 100 years has 92 bits, times a coefficient of 32: 124.
    let ceiling = u128::from(maximum.0) << FRACTION_BITS;
    let mut value = u128::from(policy.initial_interval.capped().0) << FRACTION_BITS;
    for _ in 1..attempt {
        if value >= ceiling || policy.backoff_permille <= 1000 || value == 0 {
            break;
        }
        value = value.saturating_mul(u128::from(policy.backoff_permille)) / 1000;
    }
    let ms = value.min(ceiling) >> FRACTION_BITS;
    Millis(u64::try_from(ms).unwrap_or(u64::MAX)).capped()
}

const FRACTION_BITS: u32 = 50;

/// True when the policy allows another attempt after `attempt`.
#[must_use]
pub fn has_attempts_left(policy: &RetryPolicy, attempt: u32) -> bool {
    policy.maximum_attempts == 0 || attempt < policy.maximum_attempts
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_model::limits::DURATION_MAX;

    fn policy(initial: u64, permille: u32, maximum: u64) -> RetryPolicy {
        RetryPolicy {
            initial_interval: Millis(initial),
            backoff_permille: permille,
            maximum_interval: Millis(maximum),
            ..RetryPolicy::default()
        }
    }

    #[test]
    fn intervals_double_up_to_a_hundred_times_the_first() {
        let policy = RetryPolicy::default();
        let ms = [1, 2, 3, 7, 8, 9, u32::MAX].map(|n| interval(&policy, n).0);
        assert_eq!(ms, [1000, 2000, 4000, 64_000, 100_000, 100_000, 100_000]);
    }

    #[test]
    fn extreme_values_neither_overflow_nor_loop() {
        let century = DURATION_MAX.0;
        for initial in [0, 1, 1000, century, u64::MAX] {
            for permille in [0, 1000, 1001, 2000, 1_000_000_000, u32::MAX] {
                for maximum in [0, 1, century, u64::MAX] {
                    for attempt in [0, 1, 2, 64, 1_000_000, u32::MAX] {
                        let ms = interval(&policy(initial, permille, maximum), attempt);
                        assert!(ms <= DURATION_MAX);
                        if maximum > 0 {
                            assert!(ms.0 <= maximum);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn fractions_of_the_coefficient_are_kept() {
        let policy = policy(1, 1500, 1000);
        let ms: alloc::vec::Vec<_> = (1..=6).map(|n| interval(&policy, n).0).collect();
        assert_eq!(ms, [1, 1, 2, 3, 5, 7]);
    }

    #[test]
    fn growth_of_one_permille_reaches_the_maximum_in_bounded_time() {
        // 1.001^n passes 100 at n = 4,608: the loop ends there, not at u32::MAX.
        assert_eq!(interval(&policy(1000, 1001, 0), u32::MAX), Millis(100_000));
    }

    #[test]
    fn one_attempt_means_no_retry() {
        let mut policy = RetryPolicy::default();
        assert!(has_attempts_left(&policy, u32::MAX));
        policy.maximum_attempts = 1;
        assert!(!has_attempts_left(&policy, 1));
        policy.maximum_attempts = 3;
        assert!(has_attempts_left(&policy, 2));
        assert!(!has_attempts_left(&policy, 3));
    }
}
