#!/bin/sh
# Runs a command beside a PostgreSQL server of its own, on a Unix socket and on a free port of 127.0.0.1.
# The server lies in a temporary folder, and is stopped and removed when the command ends, also by a signal. It needs
# the system's package `postgresql` alone, none of its clusters; several may run at once.
#
#     scripts/postgresql.sh run [--fast] [--max-connections N] [--set NAME=VALUE]... COMMAND [ARGUMENT...]
#
# COMMAND finds the server in COUNTERSIGN_TEST_POSTGRESQL, a URL of a superuser, and its folder in
# COUNTERSIGN_TEST_POSTGRESQL_FOLDER. With --fast a commit does not wait for the disk, and nothing is cleaned up.
set -eu

fail() {
    printf 'postgresql: %s\n' "$1" >&2
    exit 1
}

[ "${1:-}" = run ] || fail "usage: scripts/postgresql.sh run [--fast] [--max-connections N] [--set NAME=VALUE]... COMMAND"
shift
fsync=on
autovacuum=on
connections=100
settings=""
while [ $# -gt 0 ]; do
    case "$1" in
    --fast)
        fsync=off
        autovacuum=off
        ;;
    --max-connections)
        connections="$2"
        shift
        ;;
    --set)
        settings="$settings
${2%%=*} = '${2#*=}'"
        shift
        ;;
    --*) fail "unknown option $1" ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || fail "which command?"

# Debian keeps the programs of each version in a folder that is not in PATH.
programs=""
for folder in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -n -r) "$(dirname "$(command -v initdb || echo /nowhere/initdb)")"; do
    if [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ]; then
        programs="$folder"
        break
    fi
done
[ -n "${POSTGRESQL_BIN:-}" ] && programs="$POSTGRESQL_BIN"
[ -n "$programs" ] || fail "there is no initdb; install the package postgresql (scripts/setup.sh)"

# A socket's path may have 107 bytes.
folder="$(mktemp -d "${POSTGRESQL_TMPDIR:-/tmp}/countersign-pg.XXXXXX")"

# The server refuses to run as root.
as_user=""
if [ "$(id -u)" -eq 0 ]; then
    user=nobody
    if id postgres >/dev/null 2>&1; then user=postgres; fi
    chown "$user" "$folder"
    as_user="setpriv --reuid=$user --regid=$(id -g "$user") --clear-groups"
fi

postgresql_stop() {
    trap - EXIT HUP INT TERM
    if [ -e "$folder/data/postmaster.pid" ]; then
        (cd / && $as_user "$programs/pg_ctl" stop -D "$folder/data" -m immediate -s -w -t 30 >/dev/null 2>&1) || true
    fi
    rm -rf "$folder"
}
command_pid=""
# What was asked to end is told so, and waited for.
interrupted() {
    if [ -n "$command_pid" ]; then
        kill -"$1" "$command_pid" 2>/dev/null || true
        wait "$command_pid" 2>/dev/null || true
    fi
    postgresql_stop
    exit "$2"
}
trap postgresql_stop EXIT
trap 'interrupted HUP 129' HUP
trap 'interrupted INT 130' INT
trap 'interrupted TERM 143' TERM

(cd / && LC_ALL=C $as_user "$programs/initdb" -D "$folder/data" -U countersign --auth=trust -E UTF8 --locale=C --no-sync \
    >"$folder/initdb.log" 2>&1) || {
    cat "$folder/initdb.log" >&2
    fail "initdb failed"
}
cat >>"$folder/data/postgresql.conf" <<EOF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$folder'
max_connections = $connections
fsync = $fsync
full_page_writes = $fsync
autovacuum = $autovacuum
wal_level = replica
max_wal_size = 4GB
shared_buffers = 128MB
logging_collector = off
$settings
EOF

# A port may be taken between the look and the start: then another.
tries=0
while :; do
    port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
    if (cd / && $as_user "$programs/pg_ctl" start -D "$folder/data" -o "-p $port" -l "$folder/server.log" -s -w -t 60 >/dev/null 2>&1); then
        break
    fi
    tries=$((tries + 1))
    if [ "$tries" -ge 5 ]; then
        cat "$folder/server.log" >&2
        fail "the server does not start"
    fi
done

export COUNTERSIGN_TEST_POSTGRESQL="postgresql://countersign@127.0.0.1:$port/postgres"
export COUNTERSIGN_TEST_POSTGRESQL_FOLDER="$folder"
# In the background, so that a signal is seen while it runs; with the input of this script.
"$@" <&0 &
command_pid=$!
status=0
wait "$command_pid" || status=$?
command_pid=""
exit "$status"
