//! The one place that names concrete parts: redb, the sandbox, the system's clock and randomness.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use steadfast_activities::{HostPattern, HttpOptions};
use steadfast_model::Timestamp;
use steadfast_ports::{Clock, Entropy, Store, store};
use steadfast_runtime::{Activities, World};
use steadfast_sandbox::Sandbox;
use steadfast_store_redb::RedbStore;

use crate::error::{Error, Kind, Result};

/// The database's name inside the data directory.
const STORE_FILE: &str = "store.redb";

/// The folder of compiled components inside the data directory.
const CACHE_FOLDER: &str = "compiled";

/// Where a data directory keeps its database.
pub(crate) fn store_path(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE_FILE)
}

/// The system's wall clock.
#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

/// The system's randomness.
#[derive(Debug)]
struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(
        clippy::panic,
        reason = "ids that may repeat would corrupt other people's runs"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            panic!("the system has no randomness: {error}");
        }
    }
}

/// Opens everything that a host needs in a data directory, which is made if it does not exist.
///
/// # Errors
/// Says which part failed, and what to do about it.
pub(crate) fn world(data_dir: &Path) -> Result<World> {
    make_private_folder(data_dir)?;
    let store = open_store(data_dir)?;
    let cache_dir = Some(data_dir.join(CACHE_FOLDER));
    let options = steadfast_sandbox::Options {
        cache_dir,
        ..Default::default()
    };
    Ok(World {
        store: Arc::new(store),
        guests: Arc::new(sandbox(options)?),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    })
}

/// A sandbox that keeps nothing on disk.
pub(crate) fn scratch_sandbox() -> Result<Sandbox> {
    sandbox(steadfast_sandbox::Options::default())
}

fn sandbox(options: steadfast_sandbox::Options) -> Result<Sandbox> {
    Sandbox::new(options).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        Error::failure(format!("{error}{}", source.unwrap_or_default()))
    })
}

/// Opens the database of a data directory.
pub(crate) fn open_store(data_dir: &Path) -> Result<RedbStore> {
    let path = store_path(data_dir);
    let store = RedbStore::open(&path, steadfast_store_redb::Options::default());
    store.map_err(|error| store_error(&path, &error))
}

/// Most open runs that are counted: a count of millions would delay the start.
pub(crate) const COUNT_MAX: usize = 1000;

/// `12 open workflows`; `1000 or more`, if the count stopped there.
pub(crate) fn open_runs(count: usize) -> String {
    if count >= COUNT_MAX {
        return format!("{COUNT_MAX} or more open workflows");
    }
    crate::output::count(count as u64, "open workflow")
}

/// Counts the open runs of a store, at most `limit`.
pub(crate) fn count_open_runs(
    store: &dyn Store,
    blocked: bool,
    limit: usize,
) -> Result<usize, store::Error> {
    let query = store::ListQuery {
        namespace: steadfast_model::Namespace::new("default")
            .map_err(|error| store::Error::Unavailable(error.to_string()))?,
        status: Some(steadfast_model::Status::Running),
        workflow_type: None,
        workflow_id: None,
        blocked,
        before: None,
        limit,
    };
    store.list(&query).map(|runs| runs.len())
}

/// Only the owner may write there: the folder holds machine code that this process will run.
fn make_private_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| {
        Error::file("make the data directory", path, &error)
            .hint("give a directory that you may write to with --data-dir")
    })
}

/// A store's error with what to do about it.
pub(crate) fn store_error(path: &Path, error: &store::Error) -> Error {
    let path = path.display();
    let text = error.to_string();
    match error {
        store::Error::Newer { .. } => Error::refused(format!("cannot open {path}: {text}"))
            .hint("use the newer steadfast that wrote it, or another --data-dir"),
        store::Error::Corrupt(_) => Error::failure(format!("cannot open {path}: {text}"))
            .hint("steadfast has not changed the file; another --data-dir starts with a new one"),
        store::Error::Unavailable(reason) if reason.contains("another process") => Error::new(
            Kind::Conflict,
            format!("cannot open {path}: another process has it open"),
        )
        .hint("another `steadfast dev` uses this data directory: stop it, or use --data-dir"),
        store::Error::Unavailable(reason) => Error::new(
            Kind::Unavailable,
            format!("cannot open the store: {reason}"),
        ),
        store::Error::Conflict(_)
        | store::Error::Fenced { .. }
        | store::Error::Poisoned(_)
        | store::Error::Closed => Error::failure(format!("cannot open {path}: {text}")),
    }
}

/// Activities that the server runs itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuiltIns {
    /// echo, fail and sleep.
    pub(crate) has_dev_activities: bool,
    /// Hosts that http.request may reach.
    pub(crate) http_hosts: Vec<String>,
}

/// The functions of the built-in activities.
pub(crate) fn activities(built_ins: &BuiltIns) -> Result<Activities> {
    let mut allow = Vec::new();
    for text in &built_ins.http_hosts {
        allow.push(
            text.parse::<HostPattern>()
                .map_err(|error| Error::usage(error.to_string()))?,
        );
    }
    let activities = Activities::new();
    let activities = steadfast_activities::http(
        activities,
        HttpOptions {
            allow,
            ..Default::default()
        },
    );
    if built_ins.has_dev_activities {
        return Ok(steadfast_activities::dev(activities));
    }
    Ok(activities)
}

/// Answers requests until `shutdown` is ready and what is under way has been answered.
pub(crate) async fn serve(
    listener: tokio::net::TcpListener,
    handle: steadfast_runtime::Handle,
    shutdown: impl Future<Output = ()> + Send,
) -> std::io::Result<()> {
    let router = steadfast_api::router(handle, steadfast_api::ApiOptions::default());
    steadfast_api::serve(listener, router, shutdown).await
}
