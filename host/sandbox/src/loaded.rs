//! Components ready to be instantiated, on either of two engines, and the bounded set of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use steadfast_model::ComponentDigest;
use wasmtime::component::{Component, Instance, InstancePre, Linker};
use wasmtime::{Engine, PoolConcurrencyLimitError, Store};

use crate::abi::exports::{Entry, Indexes};
use crate::abi::imports;
use crate::admit;
use crate::fiber::at_once;
use crate::state::State;
use crate::trusted::Code;

/// One engine with the imports of both worlds defined.
pub(crate) struct Backend {
    pub(crate) engine: Engine,
    linker: Linker<State>,
}

impl Backend {
    /// Defines the imports for an engine.
    ///
    /// # Errors
    /// wasmtime's.
    pub(crate) fn new(engine: Engine) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker)?;
        Ok(Self { engine, linker })
    }

    fn link(&self, component: &Component) -> wasmtime::Result<Linked> {
        admit::check_functions(&self.engine, &component.component_type())?;
        let pre = self.linker.instantiate_pre(component)?;
        let indexes = Indexes::find(component)
            .ok_or_else(|| wasmtime::Error::msg("an export of the world is missing"))?;
        Ok(Linked { pre, indexes })
    }
}

/// The engines: the pool, if there is one, and what takes over when it is full.
pub(crate) struct Backends {
    pub(crate) pool: Option<Backend>,
    pub(crate) on_demand: Backend,
}

impl Backends {
    /// Makes code executable. Code that does not fit into the pool's slots runs outside of it.
    ///
    /// # Errors
    /// A [`Refusal`](steadfast_ports::guest::Refusal) for an import that does not exist, else
    /// wasmtime's.
    pub(crate) fn load(&self, code: &Code) -> wasmtime::Result<Loaded> {
        if let Some(pool) = &self.pool {
            match code.load(&pool.engine) {
                Ok(component) => {
                    let pooled = Some(pool.link(&component)?);
                    return Ok(Loaded {
                        pooled,
                        on_demand: OnceLock::new(),
                        batch_max: OnceLock::new(),
                    });
                }
                Err(error) => tracing::debug!(%error, "a component runs outside of the pool"),
            }
        }
        let linked = self.on_demand.link(&code.load(&self.on_demand.engine)?)?;
        Ok(Loaded {
            pooled: None,
            on_demand: OnceLock::from(linked),
            batch_max: OnceLock::new(),
        })
    }

    /// Makes an instance in a new store.
    ///
    /// # Errors
    /// [`NotMade`].
    pub(crate) fn instantiate<'a>(
        &self,
        loaded: &'a Loaded,
        prepare: &dyn Fn(&Engine) -> Store<State>,
    ) -> Result<Made<'a>, NotMade> {
        if let (Some(linked), Some(pool)) = (&loaded.pooled, &self.pool) {
            let mut store = prepare(&pool.engine);
            match linked.instantiate(&mut store) {
                Ok(instance) => {
                    return Ok(Made {
                        store,
                        instance,
                        indexes: &linked.indexes,
                    });
                }
                Err(error) if error.is::<PoolConcurrencyLimitError>() => {}
                Err(error) => return Err(NotMade { error, store }),
            }
        }
        let mut store = prepare(&self.on_demand.engine);
        let linked = match self.outside(loaded) {
            Ok(linked) => linked,
            Err(error) => return Err(NotMade { error, store }),
        };
        match linked.instantiate(&mut store) {
            Ok(instance) => Ok(Made {
                store,
                instance,
                indexes: &linked.indexes,
            }),
            Err(error) => Err(NotMade { error, store }),
        }
    }

    /// The component on the on-demand engine, loaded there when it is first needed.
    fn outside<'a>(&self, loaded: &'a Loaded) -> wasmtime::Result<&'a Linked> {
        if let Some(linked) = loaded.on_demand.get() {
            return Ok(linked);
        }
        let Some(pooled) = &loaded.pooled else {
            return Err(wasmtime::Error::msg("the component is on no engine"));
        };
        let code = Code::of(pooled.pre.component())?;
        let linked = self.on_demand.link(&code.load(&self.on_demand.engine)?)?;
        // Another thread may have been faster; both results are equal.
        Ok(loaded.on_demand.get_or_init(|| linked))
    }
}

/// An instance and what is needed to call it.
pub(crate) struct Made<'a> {
    pub(crate) store: Store<State>,
    pub(crate) instance: Instance,
    pub(crate) indexes: &'a Indexes,
}

/// Why there is no instance: wasmtime's words, and the store, whose limiter may know more.
pub(crate) struct NotMade {
    pub(crate) error: wasmtime::Error,
    pub(crate) store: Store<State>,
}

/// A component on one engine with its imports resolved.
struct Linked {
    pre: InstancePre<State>,
    indexes: Indexes,
}

impl Linked {
    /// A guest that may wait needs a stack of its own, also while it is made.
    fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<Instance> {
        match self.indexes.entry {
            Entry::Reactive(_) => self.pre.instantiate(store),
            Entry::Blocking { .. } => at_once(self.pre.instantiate_async(store)),
        }
    }
}

/// A component that can be instantiated.
pub(crate) struct Loaded {
    pooled: Option<Linked>,
    on_demand: OnceLock<Linked>,
    /// The description's `resume_batch_max`, once it has been asked for.
    pub(crate) batch_max: OnceLock<usize>,
}

/// The loaded components, at most so many; the least recently used one makes room.
pub(crate) struct LoadedSet {
    count_max: usize,
    slots: Mutex<Slots>,
    /// A load ended.
    ended: Condvar,
}

#[derive(Default)]
struct Slots {
    loaded: BTreeMap<ComponentDigest, (Arc<Loaded>, u64)>,
    /// Being loaded by some thread; others wait for it instead of compiling too.
    loading: BTreeSet<ComponentDigest>,
    /// Counts uses.
    clock: u64,
}

impl LoadedSet {
    pub(crate) fn new(count_max: usize) -> Self {
        Self {
            count_max: count_max.max(1),
            slots: Mutex::new(Slots::default()),
            ended: Condvar::new(),
        }
    }

    /// The component, loaded by `load` if it is not there.
    ///
    /// # Errors
    /// What `load` answers.
    pub(crate) fn get<E>(
        &self,
        digest: ComponentDigest,
        load: impl FnOnce() -> Result<Loaded, E>,
    ) -> Result<Arc<Loaded>, E> {
        let mut slots = self.lock();
        loop {
            if let Some(loaded) = slots.touch(digest) {
                return Ok(loaded);
            }
            if slots.loading.insert(digest) {
                break;
            }
            slots = self
                .ended
                .wait(slots)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(slots);
        let _turn = Turn { set: self, digest };
        let loaded = Arc::new(load()?);
        self.lock()
            .insert(digest, Arc::clone(&loaded), self.count_max);
        Ok(loaded)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // The slots are consistent between any two statements, so a panic elsewhere is no reason
        // to refuse everybody.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    fn touch(&mut self, digest: ComponentDigest) -> Option<Arc<Loaded>> {
        self.clock += 1;
        let (loaded, used) = self.loaded.get_mut(&digest)?;
        *used = self.clock;
        Some(Arc::clone(loaded))
    }

    fn insert(&mut self, digest: ComponentDigest, loaded: Arc<Loaded>, count_max: usize) {
        self.clock += 1;
        self.loaded.insert(digest, (loaded, self.clock));
        while self.loaded.len() > count_max {
            let oldest = self.loaded.iter().min_by_key(|(_, (_, used))| *used);
            let Some(digest) = oldest.map(|(digest, _)| *digest) else {
                break;
            };
            self.loaded.remove(&digest);
        }
    }
}

/// The right to load a component; giving it back, even by a panic, wakes those who wait.
struct Turn<'a> {
    set: &'a LoadedSet,
    digest: ComponentDigest,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.set.lock().loading.remove(&self.digest);
        self.set.ended.notify_all();
    }
}
