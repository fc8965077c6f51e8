//! How a workflow is started: the options of `start`, and of `signal --start`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use steadfast_api::wire::{IdConflictPolicy, IdReusePolicy, Payload, RetryPolicy, StartWorkflow};

use crate::duration;
use crate::error::{Error, Result};
use crate::input;

/// Heading of these options in help texts.
const STARTING: &str = "Start options";

/// Options of a start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = STARTING)]
pub(crate) struct StartOptionsArgs {
    /// What becomes of an id whose run has ended [default: allow-duplicate]
    #[arg(long, value_enum, value_name = "POLICY")]
    id_reuse_policy: Option<Reuse>,

    /// What becomes of an id whose run is open [default: fail]
    #[arg(long, value_enum, value_name = "POLICY")]
    id_conflict_policy: Option<Conflict>,

    /// Let the code wait before it runs; a signal ends the wait
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    start_delay: Option<Duration>,

    /// Limit of the whole execution, with all its runs
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    execution_timeout: Option<Duration>,

    /// Limit of one run
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    run_timeout: Option<Duration>,

    /// Run it again and again: "0 12 * * MON-FRI", @daily, "@every 90s"; in UTC, or with
    /// CRON_TZ=ZONE in front
    #[arg(long, value_name = "SCHEDULE")]
    cron: Option<String>,

    /// Try a failed run again, this often in all; 0: without a limit
    #[arg(long, value_name = "COUNT")]
    retry_attempts: Option<u32>,

    /// Wait before the second attempt; it doubles with every further one [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "retry_attempts")]
    retry_interval: Option<Duration>,

    /// A note about the execution; may be given several times
    #[arg(long, value_name = "NAME=JSON", value_parser = field)]
    memo: Vec<(String, String)>,

    /// One line about the execution, for people
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,

    /// More about the execution, for people
    #[arg(long, value_name = "TEXT")]
    details: Option<String>,
}

/// What becomes of an id whose run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reuse {
    /// It may be used again
    AllowDuplicate,
    /// It may be used again unless that run completed
    AllowDuplicateFailedOnly,
    /// It may not be used again
    RejectDuplicate,
}

/// What becomes of an id whose run is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Conflict {
    /// The start is refused
    Fail,
    /// Nothing is started; the open run is used
    UseExisting,
    /// The open run is terminated and the new one started
    TerminateExisting,
}

impl StartOptionsArgs {
    /// True if none was given.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Fills the options in.
    pub(crate) fn fill(self, mut start: StartWorkflow) -> Result<StartWorkflow> {
        start.id_reuse_policy = self.id_reuse_policy.map(Into::into);
        start.id_conflict_policy = self.id_conflict_policy.map(Into::into);
        start.start_delay_ms = self.start_delay.map(ms);
        start.execution_timeout_ms = self.execution_timeout.map(ms);
        start.run_timeout_ms = self.run_timeout.map(ms);
        start.retry = self.retry_attempts.map(|attempts| {
            let mut policy = RetryPolicy::from_model(steadfast_model::RetryPolicy::default());
            policy.maximum_attempts = attempts;
            if let Some(interval) = self.retry_interval {
                policy.initial_interval_ms = ms(interval);
            }
            policy
        });
        start.cron = self.cron.unwrap_or_default();
        start.memo = fields(self.memo)?;
        start.summary = self.summary.unwrap_or_default();
        start.details = self.details.unwrap_or_default();
        Ok(start)
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `name=value`.
fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("{text:?} is not NAME=JSON")),
    }
}

fn fields(given: Vec<(String, String)>) -> Result<BTreeMap<String, Payload>> {
    let mut fields = BTreeMap::new();
    for (name, value) in given {
        let value = input::json(&value, &format!("--memo {name}"))?;
        if fields.insert(name.clone(), value).is_some() {
            return Err(Error::usage(format!("--memo {name} is given twice")));
        }
    }
    Ok(fields)
}

impl From<Reuse> for IdReusePolicy {
    fn from(policy: Reuse) -> Self {
        match policy {
            Reuse::AllowDuplicate => Self::AllowDuplicate,
            Reuse::AllowDuplicateFailedOnly => Self::AllowDuplicateFailedOnly,
            Reuse::RejectDuplicate => Self::RejectDuplicate,
        }
    }
}

impl From<Conflict> for IdConflictPolicy {
    fn from(policy: Conflict) -> Self {
        match policy {
            Conflict::Fail => Self::Fail,
            Conflict::UseExisting => Self::UseExisting,
            Conflict::TerminateExisting => Self::TerminateExisting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_reach_the_request() {
        let args = StartOptionsArgs {
            id_conflict_policy: Some(Conflict::UseExisting),
            run_timeout: Some(Duration::from_secs(5)),
            retry_attempts: Some(3),
            retry_interval: Some(Duration::from_millis(20)),
            memo: vec![("owner".to_owned(), "\"ops\"".to_owned())],
            ..StartOptionsArgs::default()
        };
        let start = args.fill(StartWorkflow::default()).unwrap();
        assert_eq!(
            start.id_conflict_policy,
            Some(IdConflictPolicy::UseExisting)
        );
        assert_eq!(start.run_timeout_ms, Some(5000));
        let retry = start.retry.unwrap();
        assert_eq!((retry.maximum_attempts, retry.initial_interval_ms), (3, 20));
        assert_eq!(start.memo["owner"].get(), "\"ops\"");
    }

    #[test]
    fn a_memo_needs_a_name_and_json() {
        assert!(field("=1").is_err() && field("x").is_err());
        let args = |memo: &[(&str, &str)]| StartOptionsArgs {
            memo: memo
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
            ..StartOptionsArgs::default()
        };
        for memo in [&[("a", "hello")][..], &[("a", "1"), ("a", "2")]] {
            assert!(args(memo).fill(StartWorkflow::default()).is_err());
        }
    }
}
