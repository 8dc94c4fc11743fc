#!/bin/sh
# `make prepare`: asks a real, private Postgres about every query and keeps the answers in .sqlx, so
# that other builds need no database. Run it after a change to a migration or to SQL.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" != "--inside" ]; then
    exec scripts/with-postgres.sh scripts/prepare.sh --inside
fi
node scripts/migrate.mjs
rm -rf target/sqlx
mkdir -p target/sqlx
# The macros write one file a query while they compile; they only compile what has changed.
touch crates/storage/src/lib.rs
SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$PWD/target/sqlx cargo build --quiet --package portolan-storage
rm -rf .sqlx
mv target/sqlx .sqlx
echo "portolan: .sqlx holds $(ls .sqlx | wc -l) queries"
