//! Numbers, ids and seeds of new runs, drawn from the simulation's seed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_engine::chain::Minted;
use steadfast_model::{RunId, RunKey};
use steadfast_ports::fake::Rng;
use steadfast_runtime::chain::Minter;

/// Makes what new runs are known by. A new life of the host counts on from what is durable.
#[derive(Debug)]
pub struct Mint(Mutex<(u64, Rng)>);

impl Mint {
    pub(crate) fn new(last: RunKey, seed: u64) -> Self {
        Self(Mutex::new((last.0, Rng::new(seed))))
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Rng)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Minter for Mint {
    fn mint(&self, index: u64, count: u64) -> Minted {
        let mut inner = self.lock();
        let (last, rng) = &mut *inner;
        *last += 1;
        while *last % count != index {
            *last += 1;
        }
        let run = RunKey(*last);
        let mut random = [0; 8];
        rng.fill(&mut random);
        let mut random_seed = [0; 32];
        rng.fill(&mut random_seed);
        Minted {
            run,
            run_id: RunId::new(run, random),
            random_seed,
        }
    }
}
