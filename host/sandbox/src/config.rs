//! How wasmtime is set up: everything that could make two runs of the same code differ is off.

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmBacktraceDetails, WasmFeatures,
};

use crate::options::Options;

/// Core instances per component that the pool has room for: the guest's module, and the two small
/// ones that `wit-component` adds to tie imports to the guest's memory; one to spare.
const CORE_INSTANCES_EACH: u32 = 4;

/// Tables per component that the pool has room for: the guest's, and one of the shim.
const TABLES_EACH: u32 = 2;

/// Bytes of a memory that stay mapped when its slot goes back to the pool: they are reset instead
/// of unmapped and faulted in again. A Rust guest writes to 50 to 70 KiB, so making and dropping
/// one takes 20 us instead of 38 (measured), and an idle slot keeps about as much.
const KEEP_RESIDENT_BYTES: usize = 64 * 1024;

/// What the host's functions may need of a guest's stack. The same that threads leave free.
const HOST_STACK_BYTES: usize = 256 * 1024;

/// Unmapped bytes after each memory: offsets below this need no bounds check of their own.
const GUARD_BYTES: u64 = 64 * 1024;

/// The proposals that guests may use; `inspect` validates with the same list.
pub(crate) fn allowed_features() -> wasmparser::WasmFeatures {
    use wasmparser::WasmFeatures as F;
    F::WASM2 | F::TAIL_CALL | F::RELAXED_SIMD | F::EXTENDED_CONST | F::COMPONENT_MODEL
}

/// Settings shared by the pooling and the on-demand engine; code compiled by one runs on the
/// other.
fn base(options: &Options) -> Config {
    let mut config = Config::new();
    // Determinism: one bit pattern for a computed NaN, one result of every relaxed instruction.
    config.cranelift_nan_canonicalization(true);
    config.relaxed_simd_deterministic(true);
    // No second thread, no shared memory, no proposal whose limits we do not police.
    config.wasm_features(
        WasmFeatures::MULTI_MEMORY
            | WasmFeatures::MEMORY64
            | WasmFeatures::CUSTOM_PAGE_SIZES
            | WasmFeatures::WIDE_ARITHMETIC
            | WasmFeatures::FUNCTION_REFERENCES
            | WasmFeatures::GC
            | WasmFeatures::EXCEPTIONS
            | WasmFeatures::THREADS,
        false,
    );
    config.shared_memory(false);
    // Limits.
    config.epoch_interruption(true);
    config.max_wasm_stack(options.stack_bytes_max);
    // Of a guest that waits inside its calls: its own part, and the host's below the imports.
    config.async_stack_size(options.stack_bytes_max.saturating_add(HOST_STACK_BYTES));
    // A memory never grows past its reservation, hence never moves.
    config.memory_reservation(memory_reservation(options));
    config.memory_reservation_for_growth(0);
    config.memory_guard_size(GUARD_BYTES);
    config.memory_may_move(false);
    config.memory_init_cow(true);
    // The process's environment must not reach traps; function names are enough there.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    // Wasm frames are walked by frame pointers; nobody unwinds them with tables.
    config.native_unwind_info(false);
    config.cranelift_opt_level(OptLevel::Speed);
    config
}

fn memory_reservation(options: &Options) -> u64 {
    let page = 64 * 1024;
    u64::try_from(options.memory_bytes_max)
        .unwrap_or(u64::MAX)
        .div_ceil(page)
        .saturating_mul(page)
}

/// An engine that allocates each instance by itself.
///
/// # Errors
/// wasmtime's, when the settings do not fit this machine.
pub(crate) fn on_demand(options: &Options) -> wasmtime::Result<Engine> {
    let mut config = base(options);
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&config)
}

/// An engine with room for `options.instances_max` instances set aside.
///
/// # Errors
/// wasmtime's, above all when the address space cannot be reserved.
pub(crate) fn pooling(options: &Options) -> wasmtime::Result<Engine> {
    let count = options.instances_max;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(count);
    pool.total_core_instances(count.saturating_mul(CORE_INSTANCES_EACH));
    pool.total_memories(count);
    pool.total_stacks(count);
    pool.total_tables(count.saturating_mul(TABLES_EACH));
    pool.max_memories_per_module(1);
    pool.max_tables_per_module(TABLES_EACH);
    pool.max_memory_size(usize::try_from(memory_reservation(options)).unwrap_or(usize::MAX));
    pool.table_elements(options.table_elements_max);
    pool.linear_memory_keep_resident(KEEP_RESIDENT_BYTES);
    pool.table_keep_resident(KEEP_RESIDENT_BYTES);
    // Where Linux can tell which pages were written (6.7), only those are reset: half the time.
    pool.pagemap_scan(Enabled::Auto);
    // An idle host gives memory back: few slots stay warm for one component.
    pool.max_unused_warm_slots(64);
    let mut config = base(options);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}
