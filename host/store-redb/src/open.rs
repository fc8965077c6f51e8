//! Opening a file: making a new store, checking an old one.
//!
//! A new store is built under another name and renamed when it is complete. So a file of the
//! store's name is always a whole store, and an empty or cut one is damage, never a beginning.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadableDatabase, StorageBackend, TableError, WriteTransaction};
use steadfast_ports::store::{Error, FencingToken};

use crate::Options;
use crate::fault::{corrupt, fault, guarded};
use crate::schema::{self, FORMAT};

/// An open database that may be damaged.
///
/// redb may panic when it closes a damaged file. Nobody is left to be told then, and while another
/// panic unwinds it would end the process.
pub(crate) struct Open(Option<Database>);

impl Open {
    /// The database.
    pub(crate) fn database(&self) -> Result<&Database, Error> {
        self.0.as_ref().ok_or(Error::Closed)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let database = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(database))).is_err() {
            tracing::error!("closing the store failed: its file is damaged");
        }
    }
}

/// Opens the store in a file, or makes a new one.
pub(crate) fn file(path: &Path, options: &Options) -> Result<Open, Error> {
    guarded(|| {
        if !path.try_exists().map_err(|e| io(path, &e))? {
            create(path, options)?;
        }
        let open = Open(Some(builder(options).open(path).map_err(fault)?));
        check(open.database()?)?;
        complete(open.database()?)?;
        Ok(open)
    })
    .map_err(|error| named(path, error))
}

/// Opens the store in a backend, or makes a new one if the backend is empty.
pub(crate) fn backend(backend: impl StorageBackend, options: &Options) -> Result<Open, Error> {
    guarded(|| {
        let is_new = backend
            .len()
            .map_err(|e| Error::Unavailable(e.to_string()))?
            == 0;
        let open = Open(Some(
            builder(options)
                .create_with_backend(backend)
                .map_err(fault)?,
        ));
        if is_new {
            initialize(open.database()?)?;
        }
        check(open.database()?)?;
        complete(open.database()?)?;
        Ok(open)
    })
}

/// The newest fencing token that was given out.
pub(crate) fn fence(open: &Open) -> Result<FencingToken, Error> {
    guarded(|| {
        let redb = open.database()?.begin_read().map_err(fault)?;
        let meta = redb.open_table(schema::META).map_err(fault)?;
        let fence = meta.get(schema::META_FENCE).map_err(fault)?;
        Ok(FencingToken(fence.map_or(0, |fence| fence.value())))
    })
}

fn builder(options: &Options) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    builder
}

fn create(path: &Path, options: &Options) -> Result<(), Error> {
    let unfinished = unfinished(path);
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(io(&unfinished, &error));
        }
        Ok(()) | Err(_) => {}
    }
    let database = builder(options).create(&unfinished).map_err(fault)?;
    initialize(&database)?;
    database.close().map_err(fault)?;
    std::fs::rename(&unfinished, path).map_err(|e| io(path, &e))?;
    // The new name is durable only once its folder is flushed too. Windows cannot open a folder
    // and needs no such flush.
    if cfg!(unix) {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|e| io(folder, &e))?;
    }
    Ok(())
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}

/// Makes every table, so that readers and the check find them, and marks the format.
fn initialize(database: &Database) -> Result<(), Error> {
    let redb = database.begin_write().map_err(fault)?;
    make_tables(&redb)?;
    {
        let mut meta = redb.open_table(schema::META).map_err(fault)?;
        meta.insert(schema::META_FORMAT, FORMAT).map_err(fault)?;
        meta.insert(schema::META_FENCE, 0).map_err(fault)?;
    }
    redb.commit().map_err(fault)
}

/// Opens, and so makes, every table.
fn make_tables(redb: &WriteTransaction) -> Result<(), Error> {
    redb.open_table(schema::META).map_err(fault)?;
    redb.open_table(schema::EXECUTIONS).map_err(fault)?;
    redb.open_table(schema::CURRENT).map_err(fault)?;
    redb.open_table(schema::BY_ID).map_err(fault)?;
    redb.open_table(schema::OPEN).map_err(fault)?;
    redb.open_table(schema::BLOCKED).map_err(fault)?;
    redb.open_table(schema::HISTORY).map_err(fault)?;
    redb.open_table(schema::ACTIVITIES).map_err(fault)?;
    redb.open_table(schema::UPDATES).map_err(fault)?;
    redb.open_table(schema::TIMERS).map_err(fault)?;
    redb.open_table(schema::TASKS).map_err(fault)?;
    redb.open_table(schema::READY).map_err(fault)?;
    redb.open_table(schema::OUTBOX).map_err(fault)?;
    redb.open_table(schema::COMPONENTS).map_err(fault)?;
    redb.open_table(schema::PIECES).map_err(fault)?;
    redb.open_table(schema::ROUTES).map_err(fault)?;
    Ok(())
}

/// Makes the tables that an older build of the same format did not know.
fn complete(database: &Database) -> Result<(), Error> {
    let read = database.begin_read().map_err(fault)?;
    let count = read.list_tables().map_err(fault)?.count();
    drop(read);
    if count >= schema::TABLES {
        return Ok(());
    }
    let redb = database.begin_write().map_err(fault)?;
    make_tables(&redb)?;
    redb.commit().map_err(fault)
}

fn check(database: &Database) -> Result<(), Error> {
    let redb = database.begin_read().map_err(fault)?;
    let meta = match redb.open_table(schema::META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => {
            return Err(Error::Corrupt(
                "a redb database, but not a store of steadfast: use another path".to_owned(),
            ));
        }
        Err(error) => return Err(fault(error)),
    };
    let found = meta
        .get(schema::META_FORMAT)
        .map_err(fault)?
        .map(|format| format.value());
    match found {
        Some(FORMAT) => Ok(()),
        Some(found) if found > FORMAT => Err(Error::Newer {
            found,
            supported: FORMAT,
        }),
        Some(_) | None => Err(corrupt("the store does not say its format")),
    }
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::Unavailable(format!("{}: {error}", path.display()))
}

/// The error with the file's name in front, so that whoever reads it knows which file.
fn named(path: &Path, error: Error) -> Error {
    let path = path.display();
    match error {
        Error::Corrupt(message) => Error::Corrupt(format!("{path}: {message}")),
        Error::Unavailable(message) if !message.contains(&path.to_string()) => {
            Error::Unavailable(format!("{path}: {message}"))
        }
        Error::Unavailable(_)
        | Error::Conflict(_)
        | Error::Fenced { .. }
        | Error::Newer { .. }
        | Error::Poisoned(_)
        | Error::Closed => error,
    }
}
