//! What workers report: intent before wire, every write a compare-and-swap, and nothing that a node says decides.

use crate::mutant::{Mutant, by, edit};

const RECORD: &str = "sql/record.sql";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "intent_not_on_file",
        breaks: "broadcasting is committed before a byte leaves.",
        edits: &[
            edit(
                RECORD,
                "when f.to_be_sent then 'broadcasting' else 'signed' end,",
                "else 'signed' end,",
            ),
            edit(
                RECORD,
                "when f.to_be_sent then '{signed,broadcasting}'\n",
                "",
            ),
            edit(
                RECORD,
                "         case when r.state = 'broadcasting' then 'broadcast'::sluice.action end,\n",
                "         case when f.to_be_sent then 'broadcast'::sluice.action end,\n",
            ),
            edit(
                RECORD,
                "         case when r.state = 'broadcasting' then f.raw_data end,\n         case when r.state = 'broadcasting' then f.signature end,\n",
                "         f.raw_data, f.signature,\n",
            ),
        ],
        killer: by(
            "database",
            "durability::what_a_runner_was_told_before_a_crash_is_there_after_it_where_other_commits_are_lost",
        ),
    },
    Mutant {
        name: "commits_asynchronous",
        breaks: "Both commits are synchronous whatever the caller set.",
        edits: &[edit(
            "sql/commit.sql",
            "in ('off', 'local') then",
            "in ('remote_write') then",
        )],
        killer: by(
            "database",
            "durability::the_commits_that_matter_wait_for_the_log_whatever_role_database_and_session_say",
        ),
    },
    Mutant {
        name: "any_isolation_level",
        breaks: "The runner's functions refuse any isolation level but READ COMMITTED.",
        edits: &[edit(
            "sql/worker.sql",
            "if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then",
            "if pg_catalog.current_setting('transaction_isolation') = '' then",
        )],
        killer: by(
            "database",
            "isolation::the_runners_calls_refuse_another_isolation_level_by_name",
        ),
    },
];
