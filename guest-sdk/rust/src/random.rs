//! Values drawn from the run's recorded random stream: a replay draws the same ones.
//!
//! Nothing is buffered, so the position in the stream depends on the workflow's draws alone.

use crate::host;

/// A type with a uniform distribution over all its values (`f64`: over `0.0..1.0`).
pub trait Random: Sized {
    /// Draws a value.
    fn random() -> Self;
}

/// Draws bytes into an array.
pub(crate) fn array<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let length = u32::try_from(N).unwrap_or(u32::MAX);
    // `zip`: the host's answer has the length that was asked for.
    for (byte, drawn) in bytes.iter_mut().zip(host::random_bytes(length)) {
        *byte = drawn;
    }
    bytes
}

macro_rules! random_integers {
    ($($integer:ty),+) => {
        $(impl Random for $integer {
            fn random() -> Self {
                Self::from_le_bytes(array())
            }
        })+
    };
}

random_integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

impl Random for bool {
    fn random() -> Self {
        u8::random() & 1 == 1
    }
}

impl Random for f64 {
    fn random() -> Self {
        // 53 random bits: every result is a multiple of 2^-53.
        #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
        let bits = (u64::random() >> 11) as Self;
        bits / 9_007_199_254_740_992.0
    }
}

impl<const N: usize> Random for [u8; N] {
    fn random() -> Self {
        array()
    }
}

/// Draws a number below `bound` with no bias: products in the incomplete last part of the range
/// are drawn again (Lemire's method).
pub(crate) fn below(bound: u64) -> u64 {
    let threshold = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(u64::random()) * u128::from(bound);
        let [low, high] = halves(product);
        if low >= threshold {
            return high;
        }
    }
}

fn halves(value: u128) -> [u64; 2] {
    let mask = u128::from(u64::MAX);
    [value & mask, value >> 64].map(|half| u64::try_from(half).unwrap_or(u64::MAX))
}

/// Draws a UUID of version 4 in its usual text form.
pub(crate) fn uuid() -> String {
    let value = u128::random();
    let version = 4_u128 << 76;
    let variant = 2_u128 << 62;
    let value = value & !(0xf << 76) & !(3 << 62) | version | variant;
    let mut text = String::with_capacity(36);
    for (index, byte) in value.to_be_bytes().into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let digits = [byte >> 4, byte & 0xf].map(u32::from);
        text.extend(
            digits
                .into_iter()
                .filter_map(|digit| char::from_digit(digit, 16)),
        );
    }
    text
}
