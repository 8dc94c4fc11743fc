#!/bin/bash
# `make lint-deploy`: Dockerfile, docker-compose.yml and everything in deploy/, each by the linter that knows it best, and the two
# proxies started on loopback in front of stand-in nodes.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/lint-deploy/tools.sh
programs=$PWD/.portolan/tools/lint-deploy-programs
PATH=$PWD/.portolan/tools/lint-deploy/bin:$PATH:/usr/sbin:$programs/usr/sbin:$programs/usr/bin
libraries=$(find "$programs" -type d -path '*/lib/*-linux-gnu' 2>/dev/null | paste -sd: || true)
[ -z "$libraries" ] || export LD_LIBRARY_PATH=$libraries
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "- Dockerfile: hadolint"
hadolint --failure-threshold style Dockerfile

echo "- docker-compose.yml: the compose specification"
check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml

echo "- YAML: yamllint"
yamllint --strict --config-file scripts/lint-deploy/yamllint.yaml docker-compose.yml deploy docs/examples

echo "- docs/examples: the schema of GitHub workflows"
check-jsonschema --quiet --builtin-schema vendor.github-workflows docs/examples/github-actions.yml

echo "- Shell scripts: shellcheck"
shellcheck deploy/compose/*.sh scripts/lint-deploy.sh scripts/lint-deploy/*.sh

echo "- Kubernetes: schemas of the API"
# Two releases: the oldest that everything used here is stable in, and the newest that the linter
# knows. Kinds that the API itself does not know (settings of kustomize, resources of the Prometheus
# Operator) are left out.
rendered=()
minor=$(kubectl version --client -o json 2>/dev/null | sed -n 's/.*"minor": "\([0-9]*\).*/\1/p' || true)
if [ "${minor:-0}" -ge 27 ]; then
    for overlay in overlays/example overlays/example/migrate; do
        kubectl kustomize "deploy/kubernetes/$overlay" >"$work/${overlay//\//-}.yaml"
        rendered+=("$work/${overlay//\//-}.yaml")
    done
else
    echo "  kubectl 1.27 or newer is not here: the manifests are checked one by one, the overlay is not rendered"
fi
mapfile -t manifests < <(find deploy/kubernetes -name '*.yaml' ! -name kustomization.yaml ! -name pod-monitor.yaml)
for version in 1.29 1.37; do
    kubernetes-validate --strict --quiet -k "$version" "${manifests[@]}" "${rendered[@]}"
done

echo "- Agreement: settings, alerts, dashboard, docs"
python scripts/lint-deploy/check.py "$work/dashboard-rules.yml"

echo "- Prometheus: promtool"
promtool check config deploy/prometheus/prometheus.yml >"$work/log" || { cat "$work/log"; exit 1; }
promtool test rules deploy/prometheus/alerts_test.yml >"$work/log" || { cat "$work/log"; exit 1; }
promtool check rules "$work/dashboard-rules.yml" >"$work/log" || { cat "$work/log"; exit 1; }

echo "- Redis: a server takes the settings"
if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
    deploy=$PWD/deploy/compose
    cp -r "$deploy" "$work/compose"
    "$work/compose/secrets.sh" >/dev/null
    sed -e "s|/run/secrets/redis_acl|$work/compose/secrets/redis_acl|" -e "s|^dir .*|dir $work|" "$deploy/redis.conf" >"$work/redis.conf"
    redis-server "$work/redis.conf" --port 0 --unixsocket "$work/redis.sock" --daemonize no >"$work/log" &
    redis=$!
    for _ in $(seq 50); do
        redis-cli -s "$work/redis.sock" --no-auth-warning --user health --pass any ping 2>/dev/null | grep -q PONG && break
        sleep 0.1
    done
    password=$(cat "$work/compose/secrets/redis_password")
    policy=$(redis-cli -s "$work/redis.sock" --no-auth-warning --user portolan --pass "$password" info memory | grep maxmemory_policy || true)
    kill "$redis"
    wait "$redis" || true
    case $policy in *noeviction*) ;; *) cat "$work/log"; exit 1 ;; esac
else
    echo "  redis-server or redis-cli is not here: left out"
fi

echo "- Proxies: started in front of stand-in nodes"
python scripts/lint-deploy/proxies.py
