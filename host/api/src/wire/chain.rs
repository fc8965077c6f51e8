//! Chains of runs: what every run of one carries, and where a run stands in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steadfast_model as model;
use steadfast_model::Millis;
use steadfast_model::chain::Fields;
use utoipa::ToSchema;

use crate::wire::{Failure, Invalid, Payload, RetryPolicy, Time, Ward, present};

/// What every run of a chain carries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ChainOptions {
    /// Limit over the whole chain; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// Limit of one run; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout_ms: Option<u64>,
    /// When a failed run is followed by another attempt; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// When a run that has ended is followed by the next one; empty: never.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cron: String,
    /// Notes about the execution.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memo: BTreeMap<String, Payload>,
    /// Values that travel along with calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Payload>,
    /// One line about the execution, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// More about the execution, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
}

/// Why a run follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Initiator {
    /// The workflow asked for it.
    ContinueAsNew,
    /// The run before it failed and its policy allows another attempt.
    Retry,
    /// Its schedule says so.
    Cron,
}

/// Which limit a run exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutScope {
    /// The limit of one run.
    Run,
    /// The limit over the whole chain.
    Execution,
}

/// Where a run stands in its chain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// The first run of the chain; absent: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_run_id: Option<String>,
    /// The run before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_run_id: Option<String>,
    /// Why this run follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Initiator>,
    /// When the whole chain must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The run's code does not run before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// What the last run that completed returned.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_completion_result: Option<Payload>,
    /// Why the run before this one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// Request ids of the newest signals of the runs before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signal_ids: Vec<String>,
    /// Children of the runs before that live as long as the chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wards: Vec<Ward>,
}

impl ChainOptions {
    /// The wire form of options.
    #[must_use]
    pub fn from_model(options: model::ChainOptions) -> Self {
        Self {
            execution_timeout_ms: options.execution_timeout.map(|limit| limit.0),
            run_timeout_ms: options.run_timeout.map(|limit| limit.0),
            retry: options.retry.map(RetryPolicy::from_model),
            cron: options.cron,
            memo: fields_from_model(options.memo),
            headers: fields_from_model(options.headers),
            summary: options.summary,
            details: options.details,
        }
    }

    /// The options that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] for a malformed value.
    pub fn to_model(&self) -> Result<model::ChainOptions, Invalid> {
        Ok(model::ChainOptions {
            execution_timeout: self.execution_timeout_ms.map(Millis),
            run_timeout: self.run_timeout_ms.map(Millis),
            retry: self.retry.clone().map(RetryPolicy::into_model),
            cron: self.cron.clone(),
            memo: fields_to_model(&self.memo)?,
            headers: fields_to_model(&self.headers)?,
            summary: self.summary.clone(),
            details: self.details.clone(),
        })
    }
}

impl Link {
    /// The wire form of a link.
    #[must_use]
    pub fn from_model(link: model::Link) -> Self {
        Self {
            first_run_id: link.first_run_id.map(|id| id.to_string()),
            continued_run_id: link.continued_run_id.map(|id| id.to_string()),
            initiator: link.initiator.map(Into::into),
            expires_at: link.expiration.map(Time),
            not_before: link.not_before.map(Time),
            last_completion_result: link.last_completion_result.map(Payload::from_model),
            last_failure: link.last_failure.as_ref().map(Failure::from_model),
            signal_ids: link.signal_ids.iter().map(ToString::to_string).collect(),
            wards: link.wards.iter().map(Ward::from_model).collect(),
        }
    }

    /// The link that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] names the attribute that is malformed.
    pub fn to_model(&self) -> Result<model::Link, Invalid> {
        let run_id = |field, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| text.parse().map_err(|e| invalid(field, &e)))
                .transpose()
        };
        let ids = self.signal_ids.iter();
        let ids = ids.map(|id| id.parse().map_err(|e| invalid("signal_ids", &e)));
        Ok(model::Link {
            first_run_id: run_id("first_run_id", &self.first_run_id)?,
            continued_run_id: run_id("continued_run_id", &self.continued_run_id)?,
            initiator: self.initiator.map(Into::into),
            expiration: self.expires_at.map(Into::into),
            not_before: self.not_before.map(Into::into),
            last_completion_result: self
                .last_completion_result
                .as_ref()
                .map(Payload::to_model)
                .transpose()?,
            last_failure: self
                .last_failure
                .as_ref()
                .map(Failure::to_model)
                .transpose()?,
            signal_ids: ids.collect::<Result<_, _>>()?,
            wards: self
                .wards
                .iter()
                .map(Ward::to_model)
                .collect::<Result<_, _>>()?,
        })
    }
}

fn invalid(field: &'static str, error: &model::id::Invalid) -> Invalid {
    Invalid::new(field, error.to_string())
}

/// The wire form of named values.
#[must_use]
pub fn fields_from_model(fields: Fields) -> BTreeMap<String, Payload> {
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name, Payload::from_model(value)))
        .collect()
}

/// The named values that these stand for.
///
/// # Errors
/// [`Invalid`] for a malformed value.
pub fn fields_to_model(fields: &BTreeMap<String, Payload>) -> Result<Fields, Invalid> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| Ok((name.clone(), value.to_model()?)))
        .collect()
}

impl From<model::Initiator> for Initiator {
    fn from(initiator: model::Initiator) -> Self {
        match initiator {
            model::Initiator::ContinueAsNew => Self::ContinueAsNew,
            model::Initiator::Retry => Self::Retry,
            model::Initiator::Cron => Self::Cron,
        }
    }
}

impl From<Initiator> for model::Initiator {
    fn from(initiator: Initiator) -> Self {
        match initiator {
            Initiator::ContinueAsNew => Self::ContinueAsNew,
            Initiator::Retry => Self::Retry,
            Initiator::Cron => Self::Cron,
        }
    }
}

impl From<model::event::TimeoutScope> for TimeoutScope {
    fn from(scope: model::event::TimeoutScope) -> Self {
        match scope {
            model::event::TimeoutScope::Run => Self::Run,
            model::event::TimeoutScope::Execution => Self::Execution,
        }
    }
}

impl From<TimeoutScope> for model::event::TimeoutScope {
    fn from(scope: TimeoutScope) -> Self {
        match scope {
            TimeoutScope::Run => Self::Run,
            TimeoutScope::Execution => Self::Execution,
        }
    }
}
