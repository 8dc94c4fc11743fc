#!/bin/bash
# Runs once, when Postgres makes its data folder: the login role of the nodes. It is a member of portolan_app and nothing else;
# `portolan migrate` gives portolan_app its rights.
set -euo pipefail
password=$(cat /run/secrets/database_password)
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$password" <<'SQL'
create role portolan_app nologin noinherit nobypassrls;
create role portolan_login login noinherit password :'password' in role portolan_app;
SQL
