# The places and the environment that every script here shares. Sourced by bash, never run.
#
# Nothing outside cargo's target directory is touched: PostgreSQL runs from private copies of its installation, in which
# the extension is installed; cargo-pgrx keeps its files beside them. PostgreSQL refuses to run as root, so root runs it
# as the system user `postgres`, who must be able to reach those files: where a parent directory keeps others out, they
# go to a directory in /var/tmp that is this target directory's own.

# What is made here is read by another user when root makes it.
umask 022

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
target=$(mkdir -p "${CARGO_TARGET_DIR:-$root/target}" && cd "${CARGO_TARGET_DIR:-$root/target}" && pwd -P)
# Cargo reads a relative one from wherever it runs.
[ -z "${CARGO_TARGET_DIR:-}" ] || export CARGO_TARGET_DIR=$target
pg_major=15
pgrx_version=$(sed -n 's/^pgrx = "=\([0-9.]*\)"$/\1/p' "$root/Cargo.toml")

say() { printf '\033[2m%s\033[0m\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

[ -n "$pgrx_version" ] || die "Cargo.toml names no exact pgrx version"

is_root() { [ "$(id -u)" = 0 ]; }

# as_postgres COMMAND...: as the user who may run PostgreSQL.
as_postgres() {
    if is_root; then
        setpriv --reuid postgres --regid postgres --clear-groups -- "$@"
    else
        "$@"
    fi
}

# The directory that holds the private PostgreSQL and cargo-pgrx's home: the target directory, unless `postgres` cannot
# reach it. Before PostgreSQL is installed there is no such user, and "nobody" can reach what "postgres" can.
private_directory() {
    local other=nobody
    ! id postgres >/dev/null 2>&1 || other=postgres
    if ! is_root || setpriv --reuid "$other" --clear-groups -- test -r "$target/." -a -x "$target/." 2>/dev/null; then
        echo "$target"
        return
    fi
    # A name anyone can guess in a directory anyone can write to: it must be ours.
    local outside
    outside=/var/tmp/sluice-$(printf %s "$target" | cksum | cut -d' ' -f1)
    mkdir -m 755 "$outside" 2>/dev/null || true
    if [ -L "$outside" ] || [ "$(stat -c '%u %a' "$outside")" != "$(id -u) 755" ]; then
        die "$outside is not a directory of ours: remove it and start again"
    fi
    echo "$outside"
}

private=$(private_directory)
tools=$root/target/tools

# Two trees: `cargo pgrx test` overwrites the library in place, which kills every server that runs from the same tree.
pg_bin() { echo "$private/$1/lib/postgresql/$pg_major/bin"; }
export SLUICE_PG_BIN
SLUICE_PG_BIN=$(pg_bin postgresql-$pg_major)
pgrx_pg_config=$(pg_bin pgrx-postgresql-$pg_major)/pg_config

export PGRX_HOME=$private/pgrx
export PATH=$SLUICE_PG_BIN:$tools/bin:$PATH
# pgrx's test framework asks for it, and cron, containers and CI leave it out.
export USER=${USER:-$(id -un)}
# A developer's own settings must not reach the throwaway clusters.
unset PGDATA PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS PGSSLMODE

# A directory in which every throwaway cluster of a run lives, so that nothing is left behind, whatever ends the run. Its
# name is short because the path of a Unix socket may not exceed 107 bytes.
scratch_directory() {
    local directory
    directory=$(mktemp -d /tmp/sluice.XXXXXX)
    chmod 755 "$directory"
    echo "$directory"
}
