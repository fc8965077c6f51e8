//! The sandbox: admission, loading and instantiation put together.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use steadfast_model::{ComponentDescription, ComponentDigest};
use steadfast_ports::guest::{Admitted, Error, Fetch, Refusal};
use steadfast_ports::{Guest, Guests};
use wasmtime::component::Instance;
use wasmtime::{Engine, Store};

use crate::abi::exports::{self, Entry, Exports, Indexes};
use crate::cache::DiskCache;
use crate::fiber::{BlockingGuest, RunFunc};
use crate::instance::{SandboxedGuest, Shared};
use crate::limit::TRANSFER_BYTES_MAX;
use crate::loaded::{Backend, Backends, Loaded, LoadedSet, Made, NotMade};
use crate::options::{Options, SetupError};
use crate::shape::{self, Shape};
use crate::state::State;
use crate::ticker::Ticker;
use crate::trusted::Code;
use crate::{admit, config, fault, world};

/// Admits components and makes instances of them.
///
/// All methods may be called from any number of threads at once. Compiling takes about 2 ms per
/// kilobyte of component, spread over the cores; loading compiled code from disk about 1 ms, and
/// making an instance about 20 us.
pub struct Sandbox {
    backends: Backends,
    disk: Option<DiskCache>,
    loaded: LoadedSet,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Sets the engines up and starts the thread that interrupts guests. Where the address space
    /// for the pool cannot be had, every instance is allocated by itself.
    ///
    /// # Errors
    /// [`SetupError`] says which part failed.
    pub fn new(options: Options) -> Result<Self, SetupError> {
        let engine_error = |error: wasmtime::Error| SetupError::Engine(fault::chain(&error));
        let on_demand = config::on_demand(&options).map_err(engine_error)?;
        let pool = match options.instances_max {
            0 => None,
            _ => config::pooling(&options)
                .inspect_err(|error| tracing::warn!(%error, "there is no pool of instances"))
                .ok(),
        };
        let ticker =
            Ticker::start(options.tick, options.activation_time_max).map_err(SetupError::Thread)?;
        ticker.watch(&on_demand);
        if let Some(pool) = &pool {
            ticker.watch(pool);
        }
        let disk = options.cache_dir.as_deref();
        let disk = disk
            .map(|dir| DiskCache::open(dir, &on_demand))
            .transpose()?;
        Ok(Self {
            backends: Backends {
                pool: pool.map(Backend::new).transpose().map_err(engine_error)?,
                on_demand: Backend::new(on_demand).map_err(engine_error)?,
            },
            disk,
            loaded: LoadedSet::new(options.components_max),
            shared: Arc::new(Shared { options, ticker }),
        })
    }

    /// True when instances come from a pool, false when each is allocated by itself.
    #[must_use]
    pub fn is_pooling(&self) -> bool {
        self.backends.pool.is_some()
    }

    /// The cheap checks: shape and world.
    fn check(&self, bytes: &[u8]) -> Result<Shape, Refusal> {
        let shape = shape::look(bytes, &self.shared.options)?;
        world::check(&shape)?;
        Ok(shape)
    }

    /// Loads a checked component from the disk cache, or compiles it; then its code comes along,
    /// to be kept once the component turns out to be good.
    fn load(
        &self,
        digest: ComponentDigest,
        bytes: &[u8],
    ) -> Result<(Loaded, Option<Code>), Refusal> {
        if let Some(loaded) = self.load_cached(digest) {
            return Ok((loaded, None));
        }
        let code = Code::compile(&self.backends.on_demand.engine, bytes).map_err(|error| {
            Refusal::NotAComponent(format!("it does not compile: {}", fault::chain(&error)))
        })?;
        let loaded = self
            .backends
            .load(&code)
            .map_err(|error| match error.downcast() {
                Ok(refusal) => refusal,
                Err(error) => admit::cannot_link(&error),
            })?;
        Ok((loaded, Some(code)))
    }

    fn keep(&self, digest: ComponentDigest, code: Option<Code>) {
        if let (Some(disk), Some(code)) = (&self.disk, code) {
            disk.write(digest, code);
        }
    }

    fn load_cached(&self, digest: ComponentDigest) -> Option<Loaded> {
        let code = self.disk.as_ref()?.read(digest)?;
        self.backends
            .load(&code)
            .inspect_err(
                |error| tracing::warn!(%error, "compiled code is refused; compiling again"),
            )
            .ok()
    }

    /// A store whose clock is already running.
    fn store(&self, engine: &Engine) -> Store<State> {
        let mut store = Store::new(engine, State::new(&self.shared.options));
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(TRANSFER_BYTES_MAX);
        store.set_epoch_deadline(self.shared.ticker.enter());
        store
    }

    fn make<'a>(&self, loaded: &'a Loaded) -> Result<Made<'a>, NotMade> {
        self.backends
            .instantiate(loaded, &|engine| self.store(engine))
    }

    fn classify(&self, error: &wasmtime::Error, store: &mut Store<State>) -> Error {
        fault::classify(error, store.data_mut(), &self.shared.options)
    }

    /// Runs the component for the first time.
    fn describe(&self, loaded: &Loaded, shape: Shape) -> Result<ComponentDescription, Refusal> {
        let made = self.make(loaded).map_err(|NotMade { error, mut store }| {
            let class = self.classify(&error, &mut store);
            admit::cannot_describe("its initialisation", &error, class)
        })?;
        let Made {
            mut store,
            instance,
            indexes,
        } = made;
        let missing =
            check_exports(&mut store, &instance, indexes).map_err(|e| admit::cannot_link(&e))?;
        let described = exports::describe(&mut store, &instance, indexes);
        let description = described.map_err(|error| {
            let class = self.classify(&error, &mut store);
            admit::cannot_describe("`describe`", &error, class)
        })?;
        let description = description.with_imports(shape.imports);
        admit::check_description(&description)?;
        admit::check_handlers(&description, missing)?;
        Ok(description)
    }

    /// How many events the component takes at once; 1 if it does not say.
    fn batch_max(&self, loaded: &Loaded) -> usize {
        *loaded.batch_max.get_or_init(|| {
            let Ok(mut made) = self.make(loaded) else {
                return 1;
            };
            exports::describe(&mut made.store, &made.instance, made.indexes)
                .map_or(1, |description| description.batch_max().max(1))
        })
    }

    /// Fetches, checks and compiles a component that is not loaded.
    fn fetch(&self, digest: ComponentDigest, fetch: Fetch<'_>) -> Result<Loaded, Error> {
        if let Some(loaded) = self.load_cached(digest) {
            return Ok(loaded);
        }
        let bytes = fetch()
            .map_err(|text| Error::Unavailable(format!("component {digest}: {text}")))?
            .ok_or_else(|| Error::Unavailable(format!("there is no component {digest}")))?;
        if digest_of(&bytes) != digest {
            let text = format!("the stored bytes of component {digest} are damaged");
            return Err(Error::Unavailable(text));
        }
        let refused =
            |refusal: Refusal| Error::Unavailable(format!("component {digest}: {refusal}"));
        self.check(&bytes).map_err(refused)?;
        let (loaded, code) = self.load(digest, &bytes).map_err(refused)?;
        self.keep(digest, code);
        Ok(loaded)
    }
}

/// Checks the types of the exports that drive a run, and says whether `query` and
/// `validate-update` are missing.
fn check_exports(
    store: &mut Store<State>,
    instance: &Instance,
    indexes: &Indexes,
) -> wasmtime::Result<(bool, bool)> {
    match indexes.entry {
        Entry::Reactive(reactive) => {
            Exports::new(store, instance, reactive).map(|exports| exports.missing())
        }
        Entry::Blocking { run } => {
            let run = exports::function(store, instance, run, "run")?;
            let checked: wasmtime::Result<RunFunc> = run.typed(&*store);
            checked
                .map(|_| (true, true))
                .map_err(|e| e.context("export `run`"))
        }
    }
}

/// The identity of a component.
pub(crate) fn digest_of(bytes: &[u8]) -> ComponentDigest {
    ComponentDigest(Sha256::digest(bytes).into())
}

impl Guests for Sandbox {
    fn admit(&self, bytes: &[u8]) -> Result<Admitted, Refusal> {
        let shape = self.check(bytes)?;
        let digest = digest_of(bytes);
        let mut fresh = None;
        let loaded = self.loaded.get(digest, || {
            let (loaded, code) = self.load(digest, bytes)?;
            fresh = code;
            Ok(loaded)
        })?;
        let description = self.describe(&loaded, shape)?;
        self.keep(digest, fresh);
        Ok(Admitted {
            digest,
            description,
        })
    }

    fn instantiate(
        &self,
        component: ComponentDigest,
        fetch: Fetch<'_>,
    ) -> Result<Box<dyn Guest>, Error> {
        let loaded = self
            .loaded
            .get(component, || self.fetch(component, fetch))?;
        let batch_max = self.batch_max(&loaded);
        let made = self.make(&loaded).map_err(|NotMade { error, mut store }| {
            let class = self.classify(&error, &mut store);
            match class {
                // A trap while the instance is made is no trap of a run's code.
                Error::Trap { .. } => Error::Unavailable(fault::chain(&error)),
                Error::Timeout { .. }
                | Error::LimitExceeded(_)
                | Error::Stopped(_)
                | Error::Unavailable(_) => class,
            }
        })?;
        let Made {
            mut store,
            instance,
            indexes,
        } = made;
        let shared = Arc::clone(&self.shared);
        let unavailable = |error: wasmtime::Error| Error::Unavailable(fault::chain(&error));
        match indexes.entry {
            Entry::Reactive(reactive) => {
                let exports = Exports::new(&mut store, &instance, reactive).map_err(unavailable)?;
                Ok(Box::new(SandboxedGuest::new(
                    store, exports, shared, batch_max,
                )))
            }
            Entry::Blocking { run } => {
                let run =
                    exports::function(&mut store, &instance, run, "run").map_err(unavailable)?;
                let guest = BlockingGuest::new(store, run, shared).map_err(unavailable)?;
                Ok(Box::new(guest))
            }
        }
    }
}
