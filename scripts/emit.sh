#!/bin/sh
# `make emit`: writes the files that are generated from the code. A test fails when they are out of date.
set -eu
cd "$(dirname "$0")/.."

SQLX_OFFLINE=true cargo build --quiet
target/debug/portolan emit openapi >web/openapi.json.new
mv web/openapi.json.new web/openapi.json
target/debug/portolan emit configuration >docs/configuration.md.new
mv docs/configuration.md.new docs/configuration.md
target/debug/portolan emit configuration-schema >docs/configuration.schema.json.new
mv docs/configuration.schema.json.new docs/configuration.schema.json
target/debug/portolan emit events >docs/events.md.new
mv docs/events.md.new docs/events.md
target/debug/portolan emit bundle-schema >docs/configuration-as-code.schema.json.new
mv docs/configuration-as-code.schema.json.new docs/configuration-as-code.schema.json
npm --prefix web run --silent generate
