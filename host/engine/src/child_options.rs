//! Child options: what the guest gave, checked and with defaults filled in.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use steadfast_model::child::{
    ChildCancellation, ChildOptions, IdReusePolicy, ParentClosePolicy, ParentCloseScope,
};
use steadfast_model::id::Invalid;
use steadfast_model::{Millis, Namespace, RetryPolicy, RunId, Seq, TaskQueue, WorkflowId};

use crate::options::{Refused as RetryRefused, retry};

/// Options as given: zero and empty mean "not given".
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Limit over all runs.
    pub execution_timeout: Millis,
    /// Limit of one run.
    pub run_timeout: Millis,
    /// First retry interval.
    pub initial_interval: Millis,
    /// Growth of the retry interval in thousandths.
    pub backoff_permille: u32,
    /// Largest retry interval.
    pub maximum_interval: Millis,
    /// Attempts in total.
    pub maximum_attempts: u32,
    /// The rest, by name: [`SETTINGS`].
    pub settings: &'a [(String, String)],
}

/// What a child takes from its parent.
#[derive(Debug, Clone, Copy)]
pub struct Parent<'a> {
    /// The parent's tenant.
    pub namespace: &'a Namespace,
    /// The parent's task queue.
    pub task_queue: &'a TaskQueue,
    /// The parent's run: names children that were not given a name.
    pub run_id: RunId,
}

/// Names of the settings.
pub const SETTINGS: &str = "workflow-id, task-queue, namespace, parent-close-policy, \
    parent-close-scope, cancellation-type, id-reuse-policy, cron, summary, non-retryable-code";

/// Why options were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A setting that does not exist.
    #[error("unknown child setting {0:?} (known: {SETTINGS})")]
    UnknownSetting(String),
    /// A setting whose value is none of a few.
    #[error("child setting {setting} is {found:?} (known: {known})")]
    UnknownValue {
        /// The setting.
        setting: String,
        /// Its value.
        found: String,
        /// What it may be.
        known: String,
    },
    /// A malformed name.
    #[error(transparent)]
    Name(#[from] Invalid),
    /// The retry policy makes no sense.
    #[error(transparent)]
    Retry(#[from] RetryRefused),
    /// One run may take longer than all of them.
    #[error("the run timeout {run} is longer than the execution timeout {execution}")]
    Timeouts {
        /// Limit of one run.
        run: Millis,
        /// Limit over all runs.
        execution: Millis,
    },
}

/// Fills in defaults: the parent's namespace and task queue; the name `<parent's run>_<command>`;
/// no limits; no retries, unless something about retries is given.
///
/// # Errors
/// [`Refused`] names the option.
pub fn normalise(given: &Given<'_>, parent: Parent<'_>, seq: Seq) -> Result<ChildOptions, Refused> {
    let execution_timeout = given.execution_timeout.capped().given();
    let run_timeout = given.run_timeout.capped().given();
    if let (Some(run), Some(execution)) = (run_timeout, execution_timeout)
        && run > execution
    {
        return Err(Refused::Timeouts { run, execution });
    }
    let mut options = ChildOptions {
        namespace: parent.namespace.clone(),
        workflow_id: WorkflowId::new(format!("{}_{seq}", parent.run_id))?,
        task_queue: parent.task_queue.clone(),
        parent_close_policy: ParentClosePolicy::default(),
        parent_close_scope: ParentCloseScope::default(),
        cancellation: ChildCancellation::default(),
        id_reuse: IdReusePolicy::default(),
        execution_timeout,
        run_timeout,
        retry: retry_policy(given)?,
        cron: String::new(),
        summary: String::new(),
    };
    for (name, value) in given.settings {
        set(&mut options, name, value)?;
    }
    Ok(options)
}

fn set(options: &mut ChildOptions, name: &str, value: &str) -> Result<(), Refused> {
    match name {
        "workflow-id" => options.workflow_id = WorkflowId::new(value)?,
        "task-queue" => options.task_queue = TaskQueue::new(value)?,
        "namespace" => options.namespace = Namespace::new(value)?,
        "parent-close-policy" => {
            let all = ParentClosePolicy::ALL;
            options.parent_close_policy = one_of(name, value, &all, ParentClosePolicy::name)?;
        }
        "parent-close-scope" => {
            let all = ParentCloseScope::ALL;
            options.parent_close_scope = one_of(name, value, &all, ParentCloseScope::name)?;
        }
        "cancellation-type" => {
            let all = ChildCancellation::ALL;
            options.cancellation = one_of(name, value, &all, ChildCancellation::name)?;
        }
        "id-reuse-policy" => {
            options.id_reuse = one_of(name, value, &IdReusePolicy::ALL, IdReusePolicy::name)?;
        }
        "cron" => value.clone_into(&mut options.cron),
        "summary" => value.clone_into(&mut options.summary),
        "non-retryable-code" => options
            .retry
            .get_or_insert_default()
            .non_retryable_codes
            .push(value.into()),
        _ => return Err(Refused::UnknownSetting(name.into())),
    }
    Ok(())
}

/// The name of the child that the guest gave, if it gave one.
#[must_use]
pub fn given_id(settings: &[(String, String)]) -> Option<&str> {
    let is_id = |(name, _): &&(String, String)| name == "workflow-id";
    settings
        .iter()
        .rev()
        .find(is_id)
        .map(|(_, value)| value.as_str())
}

fn one_of<T: Copy>(
    setting: &str,
    value: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Refused> {
    let found = all.iter().copied().find(|one| name(*one) == value);
    found.ok_or_else(|| {
        let known: alloc::vec::Vec<&str> = all.iter().map(|one| name(*one)).collect();
        Refused::UnknownValue {
            setting: setting.into(),
            found: value.into(),
            known: known.join(", "),
        }
    })
}

fn retry_policy(given: &Given<'_>) -> Result<Option<RetryPolicy>, Refused> {
    let is_given = given.initial_interval.given().is_some()
        || given.maximum_interval.given().is_some()
        || given.backoff_permille > 0
        || given.maximum_attempts > 0;
    if !is_given {
        return Ok(None);
    }
    let policy = retry(&crate::options::Given {
        schedule_to_close: Millis::ZERO,
        schedule_to_start: Millis::ZERO,
        start_to_close: Millis::ZERO,
        heartbeat: Millis::ZERO,
        initial_interval: given.initial_interval,
        backoff_permille: given.backoff_permille,
        maximum_interval: given.maximum_interval,
        maximum_attempts: given.maximum_attempts,
        settings: &[],
    })?;
    Ok(Some(policy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const NOTHING: Given<'static> = Given {
        execution_timeout: Millis(0),
        run_timeout: Millis(0),
        initial_interval: Millis(0),
        backoff_permille: 0,
        maximum_interval: Millis(0),
        maximum_attempts: 0,
        settings: &[],
    };

    fn normalised(given: &Given<'_>) -> Result<ChildOptions, Refused> {
        let (namespace, queue) = (
            Namespace::new("default").unwrap(),
            TaskQueue::new("shop").unwrap(),
        );
        let parent = Parent {
            namespace: &namespace,
            task_queue: &queue,
            run_id: RunId::from_bytes([0; 16]),
        };
        normalise(given, parent, Seq(7))
    }

    #[test]
    fn nothing_given_means_the_documented_defaults() {
        let options = normalised(&NOTHING).unwrap();
        assert_eq!(
            options.workflow_id.as_str(),
            "00000000-0000-0000-0000-000000000000_7"
        );
        assert_eq!(options.task_queue.as_str(), "shop");
        assert_eq!(options.parent_close_policy, ParentClosePolicy::Terminate);
        assert_eq!(options.parent_close_scope, ParentCloseScope::Run);
        assert_eq!(
            options.cancellation,
            ChildCancellation::WaitCancellationCompleted
        );
        assert_eq!(options.id_reuse, IdReusePolicy::AllowDuplicate);
        assert_eq!(options.retry, None);
    }

    #[test]
    fn settings_are_taken_by_name() {
        let settings: alloc::vec::Vec<(String, String)> = [
            ("workflow-id", "refund-7"),
            ("task-queue", "money"),
            ("parent-close-policy", "abandon"),
            ("parent-close-scope", "chain"),
            ("cancellation-type", "try-cancel"),
            ("id-reuse-policy", "reject-duplicate"),
            ("summary", "gives it back"),
            ("non-retryable-code", "broke"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
        let options = normalised(&Given {
            maximum_attempts: 3,
            settings: &settings,
            ..NOTHING
        })
        .unwrap();
        assert_eq!(given_id(&settings), Some("refund-7"));
        assert_eq!(options.workflow_id.as_str(), "refund-7");
        assert_eq!(options.task_queue.as_str(), "money");
        assert_eq!(options.parent_close_policy, ParentClosePolicy::Abandon);
        assert_eq!(options.parent_close_scope, ParentCloseScope::Chain);
        assert_eq!(options.cancellation, ChildCancellation::TryCancel);
        assert_eq!(options.id_reuse, IdReusePolicy::RejectDuplicate);
        let retry = options.retry.unwrap();
        assert_eq!(retry.maximum_attempts, 3);
        assert_eq!(retry.non_retryable_codes, ["broke"]);
    }

    #[test]
    fn bad_options_name_themselves_and_what_is_known() {
        let refused = |name: &str, value: &str| {
            let settings = [(name.to_owned(), value.to_owned())];
            let given = Given {
                settings: &settings,
                ..NOTHING
            };
            normalised(&given).unwrap_err().to_string()
        };
        assert!(refused("colour", "red").contains("\"colour\" (known: workflow-id"));
        assert!(refused("parent-close-policy", "keep").contains("terminate, abandon"));
        assert!(refused("cancellation-type", "").contains("wait-cancellation-completed"));
        assert!(refused("parent-close-scope", "tree").contains("(known: run, chain)"));
        assert!(refused("workflow-id", "").contains("must not be empty"));
        let given = Given {
            execution_timeout: Millis(5),
            run_timeout: Millis(6),
            ..NOTHING
        };
        assert!(normalised(&given).is_err());
    }
}
