//! The law of a store, as a library of tests.
//!
//! A store runs it with one line, [`store_contract!`](crate::store_contract): one `#[test]` per
//! law. Each law asks the factory for stores of its own, which are empty and independent.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a library of tests: a broken law panics"
)]

use std::any::Any;
use std::sync::Arc;

use crate::Store;

pub mod components;
pub mod concurrency;
pub mod differential;
pub mod make;
pub mod paging;
pub mod reads;
pub mod writes;

/// A store under test, and what must outlive it (a temporary folder, for example).
pub struct Subject {
    /// The store. Declared first, so that it is dropped first.
    pub store: Arc<dyn Store>,
    /// Dropped after the store.
    pub keep: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}

impl<S: Store + 'static> From<S> for Subject {
    fn from(store: S) -> Self {
        Self {
            store: Arc::new(store),
            keep: Box::new(()),
        }
    }
}

/// Makes an empty store.
pub type Factory<'a> = &'a dyn Fn() -> Subject;

/// A law: panics when the store breaks it.
pub type Law = fn(Factory<'_>);

/// Runs all laws, one after the other.
pub fn run(factory: Factory<'_>) {
    for (_, law) in LAWS {
        law(factory);
    }
}

/// Every law with its name.
pub const LAWS: &[(&str, Law)] = &[
    (
        "failed_expectations_leave_nothing",
        writes::failed_expectations_leave_nothing,
    ),
    ("event_numbers_are_dense", writes::event_numbers_are_dense),
    ("claims_conflict", writes::claims_conflict),
    (
        "only_the_newest_owner_writes",
        writes::only_the_newest_owner_writes,
    ),
    ("changes_apply_in_order", writes::changes_apply_in_order),
    (
        "deleting_what_is_absent_is_allowed",
        writes::deleting_what_is_absent_is_allowed,
    ),
    (
        "put_and_delete_in_one_batch_cancel_out",
        writes::put_and_delete_in_one_batch_cancel_out,
    ),
    (
        "rows_replace_their_elders",
        writes::rows_replace_their_elders,
    ),
    (
        "an_empty_store_reads_as_nothing",
        reads::an_empty_store_reads_as_nothing,
    ),
    (
        "acknowledged_batches_are_visible",
        reads::acknowledged_batches_are_visible,
    ),
    (
        "histories_are_read_from_anywhere",
        reads::histories_are_read_from_anywhere,
    ),
    (
        "histories_keep_to_their_byte_limit",
        reads::histories_keep_to_their_byte_limit,
    ),
    (
        "activities_are_their_runs_alone",
        reads::activities_are_their_runs_alone,
    ),
    (
        "updates_are_their_runs_alone",
        reads::updates_are_their_runs_alone,
    ),
    ("last_events_are_known", reads::last_events_are_known),
    ("last_run_counts_up", reads::last_run_counts_up),
    (
        "timers_are_ordered_and_paged",
        paging::timers_are_ordered_and_paged,
    ),
    (
        "ready_runs_are_ordered_and_paged",
        paging::ready_runs_are_ordered_and_paged,
    ),
    (
        "letters_are_ordered_and_paged",
        paging::letters_are_ordered_and_paged,
    ),
    (
        "tasks_are_ordered_by_queue_and_paged",
        paging::tasks_are_ordered_by_queue_and_paged,
    ),
    (
        "lists_filter_newest_first",
        paging::lists_filter_newest_first,
    ),
    ("lists_are_paged", paging::lists_are_paged),
    (
        "components_come_back_whole",
        components::components_come_back_whole,
    ),
    (
        "large_components_come_back_whole",
        components::large_components_come_back_whole,
    ),
    (
        "routes_point_to_the_latest",
        components::routes_point_to_the_latest,
    ),
    ("batches_may_be_large", components::batches_may_be_large),
    (
        "batches_finish_in_order_and_once",
        concurrency::batches_finish_in_order_and_once,
    ),
    (
        "closing_answers_everybody",
        concurrency::closing_answers_everybody,
    ),
    ("callbacks_may_submit", concurrency::callbacks_may_submit),
    (
        "many_threads_write_at_once",
        concurrency::many_threads_write_at_once,
    ),
    (
        "readers_see_whole_batches",
        concurrency::readers_see_whole_batches,
    ),
    ("same_as_the_reference", differential::same_as_the_reference),
];

/// Runs the contract against a store: a module of that name with one test per law.
///
/// The expression makes a fresh [`Subject`](crate::contract::Subject), or a store, each time.
///
/// ```
/// steadfast_ports::store_contract!(memory, steadfast_ports::fake::MemStore::new());
/// ```
#[macro_export]
macro_rules! store_contract {
    ($name:ident, $factory:expr) => {
        $crate::store_contract!(@module $name, $factory,
            failed_expectations_leave_nothing
            event_numbers_are_dense
            claims_conflict
            only_the_newest_owner_writes
            changes_apply_in_order
            deleting_what_is_absent_is_allowed
            put_and_delete_in_one_batch_cancel_out
            rows_replace_their_elders
            an_empty_store_reads_as_nothing
            acknowledged_batches_are_visible
            histories_are_read_from_anywhere
            histories_keep_to_their_byte_limit
            activities_are_their_runs_alone
            updates_are_their_runs_alone
            last_events_are_known
            last_run_counts_up
            timers_are_ordered_and_paged
            ready_runs_are_ordered_and_paged
            letters_are_ordered_and_paged
            tasks_are_ordered_by_queue_and_paged
            lists_filter_newest_first
            lists_are_paged
            components_come_back_whole
            large_components_come_back_whole
            routes_point_to_the_latest
            batches_may_be_large
            batches_finish_in_order_and_once
            closing_answers_everybody
            callbacks_may_submit
            many_threads_write_at_once
            readers_see_whole_batches
            same_as_the_reference
        );
    };
    (@module $name:ident, $factory:expr, $($law:ident)*) => {
        mod $name {
            #[allow(unused_imports, reason = "the factory may need nothing from outside")]
            use super::*;

            fn check(name: &str) {
                let law = $crate::contract::LAWS.iter().find(|(found, _)| *found == name);
                let (_, law) = law.expect("the macro lists a law that does not exist");
                law(&|| $crate::contract::Subject::from($factory));
            }

            #[test]
            fn every_law_is_tested() {
                let tested = [$(stringify!($law)),*];
                let laws: Vec<&str> =
                    $crate::contract::LAWS.iter().map(|(name, _)| *name).collect();
                assert_eq!(tested.as_slice(), laws);
            }

            $(
                #[test]
                fn $law() {
                    check(stringify!($law));
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::fake::MemStore;

    crate::store_contract!(memory, MemStore::new());

    #[test]
    fn all_laws_at_once() {
        super::run(&|| MemStore::new().into());
    }
}
