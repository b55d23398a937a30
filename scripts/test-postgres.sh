#!/bin/sh
# Runs the tests that have a gateway, or a storage of their own, against a PostgreSQL in place of SQLite's files: each in a
# database of its own, which goes with it, and the tests of that storage (GatewayPostgreSQLTests).
#
#     scripts/test-postgres.sh [--essential | ARGUMENT OF swift test...]
#
# With --essential only those that depend on what the storage does: a part of `make check`.
set -eu
cd "$(dirname "$0")/.."
if [ "${COUNTERSIGN_POSTGRESQL:-1}" = 0 ]; then
    echo "test-postgres: skipped, COUNTERSIGN_POSTGRESQL is 0"
    exit 0
fi
if [ -n "${POSTGRESQL_BIN:-}" ]; then "$POSTGRESQL_BIN/postgres" --version; fi
export COUNTERSIGN_TEST_STORAGE=postgresql

if [ $# -eq 0 ]; then
    names="GatewayPostgreSQL|CountersignGateway|CountersignCLI|Countersign|BrazeCompat|ExponeaCompat"
    set -- --filter "^($names|BackgroundGeolocationCompat)Tests\."
elif [ "$1" = --essential ]; then
    names="NativeDialect|ForgedIdentity|EventProof|StoredEvent|EventFiles|KeyRing|Analytics|Following|SinkRelay"
    names="$names|AppSetting|AppDeletion|CustomerStore|BloomreachInbox|SessionTable|WebhookRunner"
    set -- --filter "^(CountersignGatewayTests\.($names)Tests/|CountersignCLITests\.DatabaseCommandTests/)" \
        --filter '^GatewayPostgreSQLTests\.'
fi

exec scripts/test.sh "$@"
