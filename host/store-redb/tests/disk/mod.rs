//! A disk in memory that remembers which writes were flushed, and stops when told to.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;
use steadfast_ports::fake::Rng;

/// How an operation is cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The machine stops before it.
    Before,
    /// The machine stops in the middle: half of a write is done.
    Torn,
    /// The machine stops after it.
    After,
    /// The operation fails, and the process lives on.
    Fail,
}

/// What happens to writes that were not flushed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lost {
    /// All are kept.
    Nothing,
    /// All are lost.
    Everything,
    /// The seed decides about each.
    Some(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*offset..end].copy_from_slice(bytes);
            }
            Self::Length(length) => image.resize(*length, 0),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// What the process sees.
    live: Vec<u8>,
    /// What a flush has made durable.
    durable: Vec<u8>,
    /// Changes since the last flush.
    pending: Vec<Change>,
    operations: u64,
    stop: Option<(u64, Stop)>,
    /// The machine has stopped: every operation fails and changes nothing.
    is_off: bool,
    is_full: bool,
}

/// The disk; clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct Disk(Arc<Mutex<State>>);

impl Disk {
    /// A disk that holds these bytes.
    pub(crate) fn new(image: Vec<u8>) -> Self {
        let durable = image.clone();
        Self(Arc::new(Mutex::new(State {
            live: image,
            durable,
            ..State::default()
        })))
    }

    /// Writes, changes of length and flushes so far.
    pub(crate) fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Stops at an operation, counted from 0.
    pub(crate) fn stop_at(&self, operation: u64, stop: Stop) {
        self.lock().stop = Some((operation, stop));
    }

    /// Makes every write fail for want of space from now on.
    pub(crate) fn fill_up(&self) {
        self.lock().is_full = true;
    }

    /// What a power loss now would leave.
    pub(crate) fn after_power_loss(&self, lost: Lost) -> Vec<u8> {
        let state = self.lock();
        let mut image = state.durable.clone();
        let mut rng = Rng::new(match lost {
            Lost::Some(seed) => seed,
            Lost::Nothing | Lost::Everything => 0,
        });
        for change in &state.pending {
            let is_kept = match lost {
                Lost::Nothing => true,
                Lost::Everything => false,
                Lost::Some(_) => rng.chance(500),
            };
            if is_kept {
                change.apply(&mut image);
            }
        }
        image
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .expect("no test panics while it holds the disk")
    }

    fn change(&self, change: Option<Change>) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_off {
            return Err(io::Error::other("the machine is off"));
        }
        if state.is_full && change.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no space left on device",
            ));
        }
        let stop = state
            .stop
            .filter(|(at, _)| *at == state.operations)
            .map(|(_, stop)| stop);
        state.operations += 1;
        let change = match (stop, change) {
            (Some(Stop::Torn | Stop::Fail), Some(Change::Write { offset, mut bytes })) => {
                bytes.truncate(bytes.len() / 2);
                Some(Some(Change::Write { offset, bytes }))
            }
            (Some(Stop::Before | Stop::Torn | Stop::Fail), _) => None,
            (Some(Stop::After) | None, change) => Some(change),
        };
        match change {
            Some(Some(change)) => {
                change.apply(&mut state.live);
                state.pending.push(change);
            }
            Some(None) => {
                state.durable = state.live.clone();
                state.pending.clear();
            }
            None => {}
        }
        match stop {
            None => Ok(()),
            Some(Stop::Fail) => Err(io::Error::other("injected")),
            Some(Stop::Before | Stop::Torn | Stop::After) => {
                state.is_off = true;
                Err(io::Error::other("the machine stops"))
            }
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.lock();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = state
            .live
            .get(offset..)
            .and_then(|rest| rest.get(..out.len()))
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.change(Some(Change::Length(length)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(None)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.change(Some(Change::Write {
            offset,
            bytes: data.to_vec(),
        }))
    }
}
