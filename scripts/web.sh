#!/bin/sh
# Builds the console into web/dist, if its sources have changed since the last time.
set -eu
cd "$(dirname "$0")/../web"

# The list of files and their contents, with the pages of /docs; what npm or the build made is left out.
stamp=$(find . ../docs \( -name node_modules -o -name dist \) -prune -o -type f -print | LC_ALL=C sort | xargs cksum | cksum)
if [ -f dist/index.html ] && [ "$(cat node_modules/.built 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi
if [ ! -d node_modules ] || [ "$(cat node_modules/.installed 2>/dev/null)" != "$(cksum <package-lock.json)" ]; then
    echo "portolan: installing the console's packages"
    npm ci --no-audit --no-fund --loglevel=error
    cksum <package-lock.json >node_modules/.installed
fi
echo "portolan: building the console"
npm run --silent build
echo "$stamp" >node_modules/.built
