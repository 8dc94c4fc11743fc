#!/bin/sh
# Installs what the tests need and the machine lacks. Everything is pinned and stays inside the project,
# Chromium excepted, which comes from the distribution.
set -eu
cd "$(dirname "$0")/.."

scripts/postgres.sh >/dev/null
command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || scripts/apt.sh chromium chromium
scripts/apt.sh python3 python3 python3-venv
# Servers of the tests' own, started and stopped by them.
scripts/unpack.sh redis-server redis-server redis-tools
# The linters of deploy files ask a server with it.
scripts/unpack.sh redis-cli redis-tools
scripts/unpack.sh haproxy haproxy
scripts/unpack.sh nginx nginx
# The clock of a process can be set wrong.
scripts/unpack.sh faketime faketime libfaketime

# npm_ci FOLDER: the packages that its lockfile names, once.
npm_ci() {
    if [ "$(cat "$1/node_modules/.installed" 2>/dev/null)" != "$(cksum <"$1/package-lock.json")" ]; then
        echo "portolan: installing the packages of $1"
        npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error
        cksum <"$1/package-lock.json" >"$1/node_modules/.installed"
    fi
}
npm_ci tests/clients/typescript
npm_ci tests/clients/eras
npm_ci tests/clients/oauth
npm_ci tests/clients/remote
npm_ci tests/clients/webhooks
npm_ci tests/fixtures-upstream/typescript
npm_ci tests/conformance
npm_ci tests/oauth-provider
npm_ci tests/attached
npm_ci tests/browser
npm_ci tests/mail

# python_venv NAME: the official Python SDK of one generation, the OAuth library, or servers of others, in an environment of its own.
python_venv() {
    venv=.portolan/tools/python-$1
    requirements=tests/clients/python/requirements-$1.txt
    if [ "$(cat "$venv/.installed" 2>/dev/null)" != "$(cksum <"$requirements")" ]; then
        echo "portolan: installing $requirements"
        rm -rf "$venv"
        python3 -m venv "$venv" 2>/dev/null || {
            rm -rf "$venv"
            # Debian splits venv off; the program python3 alone does not tell.
            scripts/apt.sh python3-venv-is-missing python3-venv || true
            python3 -m venv "$venv"
        }
        "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
        cksum <"$requirements" >"$venv/.installed"
    fi
}
python_venv v1
python_venv v2
python_venv oauth
python_venv servers
python_venv management
python_venv webhooks
