# The places and the environment that every script here shares. Sourced by bash, never run.
#
# Nothing outside the checkout is touched: PostgreSQL runs from a private copy of its installation, in which `make`
# installs the extension; cargo-pgrx keeps its files beside it. PostgreSQL refuses to run as root, so root runs it as the
# system user `postgres`, who must be able to reach those files: where a parent directory keeps others out, they go to
# a directory of this checkout's own in /var/tmp.

# What is made here is read by another user when root makes it.
umask 022

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
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

# The directory that holds the private PostgreSQL and cargo-pgrx's home: target/, unless `postgres` cannot reach it.
# Before PostgreSQL is installed there is no such user, and "nobody" can reach what "postgres" can.
private_directory() {
    local inside=$root/target other=nobody
    ! id postgres >/dev/null 2>&1 || other=postgres
    mkdir -p "$inside"
    if ! is_root || setpriv --reuid "$other" --clear-groups -- test -r "$inside/." -a -x "$inside/." 2>/dev/null; then
        echo "$inside"
        return
    fi
    # A name anyone can guess in a directory anyone can write to: it must be ours.
    local outside
    outside=/var/tmp/sluice-$(printf %s "$root" | cksum | cut -d' ' -f1)
    mkdir -m 755 "$outside" 2>/dev/null || true
    if [ -L "$outside" ] || [ "$(stat -c '%u %a' "$outside")" != "$(id -u) 755" ]; then
        die "$outside is not a directory of ours: remove it and start again"
    fi
    echo "$outside"
}

private=$(private_directory)
postgres_tree=$private/postgresql-$pg_major
tools=$root/target/tools

export PGRX_HOME=$private/pgrx
export SLUICE_PG_BIN=$postgres_tree/lib/postgresql/$pg_major/bin
export PATH=$SLUICE_PG_BIN:$tools/bin:$PATH
# pgrx's test framework asks for it, and cron, containers and CI leave it out.
export USER=${USER:-$(id -un)}
# A developer's own settings must not reach the throwaway clusters.
unset PGDATA PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS PGSSLMODE
