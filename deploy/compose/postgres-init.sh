#!/bin/bash
# Runs once, when Postgres makes its data folder: the two login roles. That of MCP endpoints alone is a member of portolan_mcp and nothing
# else, that of everything else of portolan_app; `portolan migrate` gives both groups their rights.
set -euo pipefail
password=$(cat /run/secrets/database_password)
mcp_password=$(cat /run/secrets/mcp_database_password)
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$password" --set mcp_password="$mcp_password" <<'SQL'
create role portolan_app nologin noinherit nobypassrls;
create role portolan_mcp nologin noinherit nobypassrls;
create role portolan_login login noinherit password :'password' in role portolan_app;
create role portolan_mcp_login login noinherit password :'mcp_password' in role portolan_mcp;
SQL
