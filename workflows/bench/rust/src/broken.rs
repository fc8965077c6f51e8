//! Workflows that go wrong, each in its own way.

use steadfast_sdk::{Context, Failure, workflow};

/// Fails with the code `bench-failure`.
#[workflow]
pub async fn fails(_ctx: Context) -> Result<(), Failure> {
    Err(Failure::application("bench-failure", "this workflow always fails").with_details(&42))
}

/// Panics, which blocks the run.
#[workflow(name = "panic")]
pub async fn panics(_ctx: Context) -> Result<(), Failure> {
    panic!("this workflow always panics");
}

/// Never comes back.
#[workflow]
pub async fn spin(_ctx: Context) -> Result<(), Failure> {
    let mut turns = 0_u64;
    loop {
        // The compiler must not see through it.
        turns = std::hint::black_box(turns).wrapping_add(1);
    }
}

/// Takes ever more memory.
#[workflow]
pub async fn grow(_ctx: Context) -> Result<(), Failure> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    loop {
        // Written to, so that the memory is really taken.
        blocks.push(vec![1; 1 << 20]);
        std::hint::black_box(&blocks);
    }
}
