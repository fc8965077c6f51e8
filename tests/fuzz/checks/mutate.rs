// Seeded mutations of bytes, for tests that must give the same result everywhere.

/// A small generator of pseudo-random numbers (splitmix64).
pub struct Seeded(pub u64);

impl Seeded {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("it fits")).expect("it fits")
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// The bytes with one to four changes: a flipped bit, another value, a cut, a repetition, an
    /// insertion or a removal.
    pub fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                bytes.push(self.byte());
                continue;
            }
            let at = self.below(bytes.len());
            match self.below(8) {
                0 | 1 => bytes[at] ^= 1 << self.below(8),
                2 | 3 => bytes[at] = self.byte(),
                4 => bytes[at] = [0, 0x7f, 0x80, 0xff][self.below(4)],
                5 => bytes.insert(at, self.byte()),
                6 => drop(bytes.remove(at)),
                _ => {
                    let end = (at + 1 + self.below(16)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    if self.below(4) == 0 {
                        bytes.truncate(at);
                    } else {
                        bytes.splice(at..at, part);
                    }
                }
            }
        }
        bytes
    }
}
