//! What an embedder may choose when it makes a [`Sandbox`](crate::Sandbox).

use std::path::PathBuf;
use std::time::Duration;

use steadfast_model::Millis;
use steadfast_model::limits;

/// Settings of a sandbox. [`Options::default`] has the limits of [`steadfast_model::limits`] and
/// no cache on disk.
///
/// The memory, table and stack limits take part in compilation, so changing them makes cached
/// code compile again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Folder of compiled components; made when it does not exist. `None` keeps them in memory
    /// only. It holds machine code that this process will run: nobody else may write to it.
    pub cache_dir: Option<PathBuf>,
    /// Compiled components kept in memory; the least recently used one goes first. Default 256,
    /// at least 1.
    pub components_max: usize,
    /// Largest linear memory of an instance in bytes, all its memories together.
    pub memory_bytes_max: usize,
    /// Most elements of an instance's tables, all of them together.
    pub table_elements_max: usize,
    /// Largest wasm stack in bytes. The thread that drives a guest needs that much stack and
    /// about 256 KiB more; the 2 MiB of Rust's own threads are enough for the default.
    pub stack_bytes_max: usize,
    /// Longest call of a guest before it is interrupted.
    pub activation_time_max: Millis,
    /// Instances whose memory comes from the pool, which makes them cheap to create. Further ones
    /// are allocated one by one. Address space is reserved for all of them. Default 1000; 0 turns
    /// the pool off.
    pub instances_max: u32,
    /// How often running guests look whether their time is over. Default 10 ms.
    pub tick: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_dir: None,
            components_max: 256,
            memory_bytes_max: limits::GUEST_MEMORY_BYTES_MAX,
            table_elements_max: limits::GUEST_TABLE_ELEMENTS_MAX,
            stack_bytes_max: limits::GUEST_STACK_BYTES_MAX,
            activation_time_max: limits::ACTIVATION_TIME_MAX,
            instances_max: 1000,
            tick: Duration::from_millis(10),
        }
    }
}

/// Why a sandbox could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The compiler or the runtime refused the settings.
    #[error("the WebAssembly engine cannot be set up: {0}")]
    Engine(String),
    /// The cache folder cannot be made.
    #[error("the cache folder {} cannot be made", path.display())]
    CacheDir {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The thread that interrupts guests cannot be started.
    #[error("the interrupting thread cannot be started")]
    Thread(#[source] std::io::Error),
}
