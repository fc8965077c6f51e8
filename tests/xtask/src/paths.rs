//! Where things are.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The repository and what is built from it.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The repository's root.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
}

impl Paths {
    /// Asks the environment that cargo has set.
    pub(crate) fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest = manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        let root = manifest
            .ancestors()
            .nth(2)
            .context("xtask is not two folders deep")?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or_else(|| root.join("target"));
        let target = std::path::absolute(target).context("the target directory has no path")?;
        Ok(Self {
            root: root.to_owned(),
            target,
        })
    }

    /// The host's binary, built with a profile.
    pub(crate) fn host_binary(&self, profile: &str) -> PathBuf {
        let folder = if profile == "dev" { "debug" } else { profile };
        self.target
            .join(folder)
            .join(format!("steadfast{}", std::env::consts::EXE_SUFFIX))
    }

    /// Where components go.
    pub(crate) fn guests(&self) -> PathBuf {
        self.target.join("guests")
    }

    /// Cargo's target directory for the samples: the host's must not be locked while they build.
    pub(crate) fn guests_target(&self) -> PathBuf {
        self.guests().join("build")
    }
}
