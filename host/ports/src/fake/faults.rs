//! What goes wrong with a store, how often, and by which seed.

use crate::fake::Rng;
use crate::store::Error;

/// Rates of faults in thousandths, drawn once per submitted batch (reads: once per read). The
/// default is no faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Decides which batches are hit.
    pub seed: u64,
    /// The batch is not written and fails with `Unavailable`.
    pub unavailable_permille: u32,
    /// The batch is written and yet fails with `Unavailable`: its acknowledgement is lost.
    pub lost_ack_permille: u32,
    /// The batch, and with it all behind it, waits for some more steps.
    pub stall_permille: u32,
    /// Longest stall, in steps; a stall is 1 to this many.
    pub stall_steps_max: u32,
    /// The batch's flush fails: by the luck of the draw it is written or not, and the store is
    /// poisoned.
    pub poison_permille: u32,
    /// A read fails with `Unavailable`.
    pub read_permille: u32,
}

/// What befalls one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Not written, fails.
    Unavailable,
    /// Written, fails.
    LostAck,
    /// The flush fails; written or not.
    Poison {
        /// Whether the disk took it before the failure.
        written: bool,
    },
}

/// A plan being carried out.
#[derive(Debug)]
pub(crate) struct Faults {
    plan: FaultPlan,
    writes: Rng,
    reads: Rng,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        // Two streams: how often a run happens to read must not decide which writes fail.
        let writes = Rng::new(plan.seed);
        let reads = Rng::new(plan.seed ^ 0x5eed_0fea_d5ee_d5ee);
        Self {
            plan,
            writes,
            reads,
        }
    }

    /// What befalls the next batch, and for how many steps it is stalled first.
    pub(crate) fn next_write(&mut self) -> (Fault, u32) {
        let stall = if self.writes.chance(self.plan.stall_permille) {
            let longest = u64::from(self.plan.stall_steps_max.max(1));
            u32::try_from(1 + self.writes.below(longest)).unwrap_or(u32::MAX)
        } else {
            0
        };
        let fault = if self.writes.chance(self.plan.poison_permille) {
            Fault::Poison {
                written: self.writes.chance(500),
            }
        } else if self.writes.chance(self.plan.unavailable_permille) {
            Fault::Unavailable
        } else if self.writes.chance(self.plan.lost_ack_permille) {
            Fault::LostAck
        } else {
            Fault::None
        };
        (fault, stall)
    }

    /// Fails every so many reads.
    pub(crate) fn next_read(&mut self) -> Result<(), Error> {
        if self.reads.chance(self.plan.read_permille) {
            return Err(Error::Unavailable("injected: the read failed".to_owned()));
        }
        Ok(())
    }
}
