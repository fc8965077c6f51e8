//! Compiled components on disk.
//!
//! A file's name holds the component's digest and a hash of the compiler's version and settings;
//! its content ends with a hash over code and name. Whatever does not match is compiled again, so
//! the folder may be emptied at any time.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use steadfast_model::ComponentDigest;
use wasmtime::Engine;

use crate::options::SetupError;
use crate::trusted::Code;

/// The folder of compiled components.
pub(crate) struct DiskCache {
    dir: PathBuf,
    /// Which compiler wrote a file, in hexadecimal.
    engine: String,
    /// Makes names of temporary files unique within the process.
    temporary: AtomicU64,
}

impl DiskCache {
    /// Opens the folder, making it if need be.
    ///
    /// # Errors
    /// [`SetupError::CacheDir`].
    pub(crate) fn open(dir: &Path, engine: &Engine) -> Result<Self, SetupError> {
        fs::create_dir_all(dir).map_err(|source| SetupError::CacheDir {
            path: dir.to_owned(),
            source,
        })?;
        Ok(Self {
            dir: dir.to_owned(),
            engine: engine_hash(engine),
            temporary: AtomicU64::new(0),
        })
    }

    /// The code of a component, if it is there and undamaged.
    pub(crate) fn read(&self, component: ComponentDigest) -> Option<Code> {
        let name = self.name(component);
        let path = self.dir.join(&name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(path = %path.display(), %error, "cannot read compiled code");
                }
                return None;
            }
        };
        let code = Code::unseal(bytes, name.as_bytes());
        if code.is_none() {
            tracing::warn!(path = %path.display(), "compiled code is damaged; compiling again");
        }
        code
    }

    /// Keeps the code of a component. A failure costs only a later compilation, so it is logged.
    pub(crate) fn write(&self, component: ComponentDigest, code: Code) {
        let name = self.name(component);
        let sealed = code.seal(name.as_bytes());
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self
            .dir
            .join(format!(".{name}.{}.{number}.tmp", std::process::id()));
        // Readers see the old file or the new one, never half of it. No flush: a file cut off by
        // a power failure does not match its hash.
        let written = fs::write(&temporary, sealed)
            .and_then(|()| fs::rename(&temporary, self.dir.join(&name)));
        if let Err(error) = written {
            tracing::warn!(dir = %self.dir.display(), %error, "cannot keep compiled code");
            // Nothing more can be done about what is left of it.
            let _removed = fs::remove_file(&temporary);
        }
    }

    fn name(&self, component: ComponentDigest) -> String {
        format!("{component}-{}.cwasm", self.engine)
    }
}

/// A short name of the compiler: its version, target and settings.
fn engine_hash(engine: &Engine) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The standard library's hashers may change with its version, and a file name must not.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash: [u8; 32] = self.0.clone().finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = hash;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}
