//! A host wired as the binary wires it: redb, wasmtime, the system's clock.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use steadfast_model::{ActivityType, Namespace, Payload, Timestamp, WorkflowId, WorkflowType};
use steadfast_ports::{Clock, Entropy};
use steadfast_runtime::handle::{StartOptions, StartWorkflow};
use steadfast_runtime::{Activities, Handle, Options, World};

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let filled = getrandom::fill(bytes);
        assert!(filled.is_ok(), "the system has no randomness: {filled:?}");
    }
}

/// Everything a host needs, in a directory.
pub(crate) fn world(dir: &Path) -> Result<World> {
    let store = steadfast_store_redb::RedbStore::open(
        dir.join("store.redb"),
        steadfast_store_redb::Options::default(),
    )?;
    let options = steadfast_sandbox::Options {
        cache_dir: Some(dir.join("compiled")),
        ..steadfast_sandbox::Options::default()
    };
    Ok(World {
        store: Arc::new(store),
        guests: Arc::new(steadfast_sandbox::Sandbox::new(options)?),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    })
}

/// Options with the activity `echo` in this process, or without.
pub(crate) fn options(with_echo: bool, cache_bytes: usize) -> Result<Options> {
    let mut activities = Activities::new();
    if with_echo {
        let echo = |_context, input: Payload| async move { Ok(input) };
        activities = activities.register(ActivityType::new("echo")?, echo);
    }
    Ok(Options {
        activities,
        cache_bytes,
        ..Options::default()
    })
}

/// The component of the benchmark workflows; `cargo xtask bench` builds it and says where.
pub(crate) fn component() -> Result<Vec<u8>> {
    let dir = std::env::var("STEADFAST_GUESTS")
        .context("STEADFAST_GUESTS is not set: run this with `cargo xtask bench`")?;
    let path = PathBuf::from(dir).join("bench.wasm");
    std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
}

/// A start of a benchmark workflow.
pub(crate) fn start(workflow_type: &str, id: &str, input: &str) -> Result<StartWorkflow> {
    Ok(StartWorkflow {
        namespace: Namespace::new("default")?,
        workflow_id: Some(WorkflowId::new(id)?),
        workflow_type: WorkflowType::new(workflow_type)?,
        task_queue: None,
        input: Payload::json(input),
        request_id: None,
        identity: String::new(),
        options: StartOptions::default(),
    })
}

/// Starts a workflow and waits until it has completed.
pub(crate) async fn execute(handle: &Handle, workflow: StartWorkflow) -> Result<()> {
    let id = workflow.workflow_id.clone();
    let (_, close) = handle.execute(workflow, Duration::from_secs(600)).await?;
    match close.map(|event| event.kind) {
        Some(steadfast_model::EventKind::WorkflowExecutionCompleted { .. }) => Ok(()),
        other => bail!("{id:?} did not complete: {other:?}"),
    }
}

/// A tokio runtime like the binary's.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

/// `host DIR ECHO CACHE_MIB`: serves the API on a free port and prints it.
pub(crate) fn serve(args: &[String]) -> Result<()> {
    let [_, dir, echo, cache_mib] = args else {
        bail!("host DIR ECHO CACHE_MIB")
    };
    let (dir, cache_bytes) = (
        PathBuf::from(dir),
        cache_mib.parse::<usize>()? * 1024 * 1024,
    );
    runtime()?.block_on(async move {
        let handle = steadfast_runtime::start(options(echo == "echo", cache_bytes)?, world(&dir)?)?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let router = steadfast_api::router(handle, steadfast_api::ApiOptions::default());
        steadfast_api::serve(listener, router, std::future::pending::<()>()).await?;
        Ok(())
    })
}

/// A host in a process of its own.
pub(crate) struct HostProcess {
    child: Child,
    pub(crate) address: String,
    /// From the start of the process to its first answer.
    pub(crate) ready_after: Duration,
}

impl HostProcess {
    pub(crate) fn start(dir: &Path, echo: bool, cache_mib: usize) -> Result<Self> {
        let begun = Instant::now();
        let mut child = Command::new(std::env::current_exe()?)
            .arg("host")
            .arg(dir)
            .arg(if echo { "echo" } else { "none" })
            .arg(cache_mib.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let stdout = child.stdout.as_mut().context("no output")?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut address)?;
        let address = address.trim().to_owned();
        if address.is_empty() {
            bail!("the host process did not start");
        }
        let mut host = Self {
            child,
            address,
            ready_after: Duration::ZERO,
        };
        let mut client = crate::http::Blocking::connect(&host.address)?;
        client.get("/readyz")?;
        host.ready_after = begun.elapsed();
        Ok(host)
    }

    pub(crate) fn upload(&self) -> Result<()> {
        let mut client = crate::http::Blocking::connect(&self.address)?;
        client.post("/api/v1/components", "application/wasm", &component()?)?;
        Ok(())
    }

    /// Resident bytes of the process.
    pub(crate) fn resident_bytes(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .context("no VmRSS")?;
        let kib: f64 = line
            .split_whitespace()
            .nth(1)
            .context("no figure")?
            .parse()?;
        Ok(kib * 1024.0)
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
