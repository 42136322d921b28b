//! The conformance suite, for every runtime there is.
#![allow(clippy::unwrap_used)]

#[path = "../server/mod.rs"]
mod server;
mod suite;

/// Every check of the suite as a test of the local runtime: of a server that is root, and of one that is
/// an ordinary user's.
macro_rules! local {
    ($($check:ident),* $(,)?) => {
        mod local {
            mod by_root {
                $(#[test]
                fn $check() {
                    crate::server::served(async |_, local, _| crate::suite::$check(&local).await);
                })*
            }

            mod by_an_ordinary_user {
                $(#[test]
                fn $check() {
                    crate::server::served_by_tester(async |_, local, _| {
                        crate::suite::$check(&local).await;
                    });
                })*
            }
        }
    };
}

local!(
    a_session_runs_code_and_remembers_files_only,
    what_is_enforced_is_what_can_be,
    what_was_promised_is_enforced_or_nothing_is_raised,
    what_is_free_is_part_of_what_there_is,
    a_session_that_is_raised_cannot_be_raised,
    ending_and_discarding_may_be_repeated,
    a_workspace_outlives_its_session_until_it_is_discarded,
    sessions_are_strangers,
    a_frozen_session_stands_still_and_goes_on,
    a_deadline_that_passes_while_frozen_is_kept_afterwards,
    a_frozen_session_can_be_ended_and_discarded,
    what_is_not_raised_cannot_be_frozen_or_measured,
    a_fork_is_a_copy_and_both_go_on_alone,
    a_fork_of_one_that_ended_and_of_one_that_is_frozen,
    a_fork_of_one_that_is_raised_meanwhile_ends_nothing,
    a_fork_has_no_place_where_something_is,
    changes_are_told_of_running_and_ended_sessions,
    usage_follows_what_runs,
    code_has_no_power_and_finds_no_secrets,
);
