#!/bin/sh
# Makes the secrets of docker-compose.yml in deploy/compose/secrets, once. Existing secrets stay.
# Keep a copy of master_secret in a safe place: without it the database's stored credentials cannot
# be opened.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets
cd secrets

# secret NAME TEXT: one line in a file. The folder is private to you; the file is readable, because inside a container another
# user reads it.
secret() {
    [ -s "$1" ] || printf '%s\n' "$2" >"$1"
    chmod 644 "$1"
}
random() {
    openssl rand -hex 32
}

secret master_secret "$(random)"
secret postgres_password "$(random)"
secret database_password "$(random)"
secret mcp_database_password "$(random)"
secret redis_password "$(random)"
secret database_owner_url "postgres://postgres:$(cat postgres_password)@postgres:5432/portolan"
secret database_url "postgres://portolan_login:$(cat database_password)@postgres:5432/portolan"
secret mcp_database_url "postgres://portolan_mcp_login:$(cat mcp_database_password)@postgres:5432/portolan"
secret redis_url "redis://portolan:$(cat redis_password)@redis:6379/0"
secret redis_acl "user default off
user portolan on >$(cat redis_password) ~pl1:* &pl1:* +@all -@dangerous -@admin +info
user health on nopass -@all +ping"
echo "portolan: deploy/compose/secrets is complete"
