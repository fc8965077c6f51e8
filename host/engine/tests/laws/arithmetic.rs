//! Retry arithmetic against numbers of any length.

use std::cmp::Ordering;

use proptest::prelude::*;
use steadfast_engine::retry::interval;
use steadfast_model::limits::DURATION_MAX;
use steadfast_model::{Millis, RetryPolicy};

/// A natural number, least significant digit first, without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Natural(Vec<u32>);

impl Natural {
    fn new(value: u64) -> Self {
        let mut one = Self(vec![1]);
        one.scale(value);
        one
    }

    fn scale(&mut self, by: u64) {
        let mut carry = 0_u128;
        for digit in &mut self.0 {
            carry += u128::from(*digit) * u128::from(by);
            *digit = u32::try_from(carry & 0xffff_ffff).expect("masked");
            carry >>= 32;
        }
        while carry > 0 {
            self.0
                .push(u32::try_from(carry & 0xffff_ffff).expect("masked"));
            carry >>= 32;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// `floor(initial * permille^(attempt-1) / 1000^(attempt-1))`, at most `ceiling`.
fn exact(initial: u64, permille: u32, ceiling: u64, attempt: u32) -> u64 {
    let (mut above, mut below) = (Natural::new(initial), Natural::new(1));
    for _ in 1..attempt {
        above.scale(u64::from(permille));
        below.scale(1000);
    }
    // The largest number whose product with the divisor is not above the dividend.
    let (mut low, mut high) = (0, ceiling);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let mut product = below.clone();
        product.scale(middle);
        if product.compare(&above) == Ordering::Greater {
            high = middle - 1;
        } else {
            low = middle;
        }
    }
    low
}

fn ceiling(initial: u64, maximum: u64) -> u64 {
    let chosen = if maximum == 0 {
        initial.saturating_mul(100)
    } else {
        maximum
    };
    chosen.min(DURATION_MAX.0)
}

fn agrees(initial: u64, permille: u32, maximum: u64, attempt: u32) {
    let policy = RetryPolicy {
        initial_interval: Millis(initial),
        backoff_permille: permille,
        maximum_interval: Millis(maximum),
        ..RetryPolicy::default()
    };
    let expected = exact(initial, permille, ceiling(initial, maximum), attempt);
    let found = interval(&policy, attempt).0;
    // Rounding towards zero may cost the last millisecond, never more, and never adds one.
    assert!(
        found == expected || found + 1 == expected,
        "{initial} ms * ({permille}/1000)^({attempt}-1), at most {maximum}: {found}, not {expected}"
    );
}

#[test]
fn extremes_agree_with_exact_arithmetic() {
    let century = DURATION_MAX.0;
    for initial in [0, 1, 2, 999, 1000, century - 1, century, u64::MAX] {
        for permille in [1000, 1001, 1500, 2000, 999_999_999, 1_000_000_000, u32::MAX] {
            for maximum in [0, 1, 1000, century, u64::MAX] {
                for attempt in [1, 2, 3, 10, 64, 300] {
                    agrees(initial, permille, maximum, attempt);
                }
            }
        }
    }
}

#[test]
fn slow_growth_over_thousands_of_attempts_is_exact() {
    for attempt in [1000, 2000, 4000, 4608, 4700] {
        agrees(1, 1001, DURATION_MAX.0, attempt);
        agrees(1000, 1001, 0, attempt);
    }
    // Whole results are whole: no rounding hides here.
    let policy = RetryPolicy {
        initial_interval: Millis(1_000_000),
        backoff_permille: 1100,
        maximum_interval: DURATION_MAX,
        ..RetryPolicy::default()
    };
    assert_eq!(interval(&policy, 7), Millis(1_771_561));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn intervals_agree_with_exact_arithmetic(
        initial in prop_oneof![0..10_u64, 0..1_000_000_u64, any::<u64>()],
        permille in prop_oneof![1000..1010_u32, 1000..5000_u32, 1000..=1_000_000_000_u32],
        maximum in prop_oneof![Just(0_u64), 1..1_000_000_u64, any::<u64>()],
        attempt in prop_oneof![1..10_u32, 1..200_u32],
    ) {
        agrees(initial, permille, maximum, attempt);
    }

    #[test]
    fn intervals_never_shrink(
        initial in 1..1_000_000_u64,
        permille in 1000..5000_u32,
        attempt in 1..100_u32,
    ) {
        let policy = RetryPolicy {
            initial_interval: Millis(initial),
            backoff_permille: permille,
            ..RetryPolicy::default()
        };
        prop_assert!(interval(&policy, attempt) <= interval(&policy, attempt + 1));
    }
}
