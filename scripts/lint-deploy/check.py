"""What no general linter knows: that the files of deploy/ agree with the settings, with docs/operating.md and with each other.

Prints the expressions of the dashboard as a file of rules, for promtool, to the path that is given."""

import json
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
faults = []


def fault(where, what):
    faults.append(f'{where}: {what}')


def read(path):
    return (ROOT / path).read_text()


# Settings, as `portolan emit configuration` lists them: an unknown one refuses to start.
rows = re.findall(r'^\| `(\w+)`( \*\(secret\)\*)? \| `(PORTOLAN_\w+)`', read('docs/configuration.md'), re.M)
known = {variable for _, _, variable in rows}
known |= {f'{variable}_FILE' for _, secret, variable in rows if secret}


def settings(where, variables):
    for variable in variables:
        if variable.startswith('PORTOLAN_') and variable not in known:
            fault(where, f'{variable} is no setting (docs/configuration.md)')


def seconds(text):
    return int(text.removesuffix('s'))


compose = yaml.safe_load(read('docker-compose.yml'))
for name, service in compose['services'].items():
    where = f'docker-compose.yml, {name}'
    for kind in ('secrets', 'networks'):
        for used in service.get(kind, []):
            if used not in compose[kind]:
                fault(where, f'{used} is not among the {kind}')
    for needed in service.get('depends_on', {}):
        if needed not in compose['services']:
            fault(where, f'depends on {needed}, which is not there')
    for volume in service.get('volumes', []):
        source = volume.split(':')[0]
        if source.startswith('.') and not (ROOT / source).exists():
            fault(where, f'{source} does not exist')
        if not source.startswith('.') and source not in compose['volumes']:
            fault(where, f'{source} is not among the volumes')
    environment = service.get('environment', {})
    settings(where, environment)
    for variable, value in environment.items():
        if str(value).startswith('/run/secrets/') and value.removeprefix('/run/secrets/') not in service.get('secrets', []):
            fault(where, f'{variable} names a secret that the service is not given')
    if 'serve' in service.get('command', []) and seconds(service.get('stop_grace_period', '10s')) < 40:
        fault(where, 'stop_grace_period is below 40s')
    if not service.get('healthcheck') and 'build' not in service:
        fault(where, 'has no health check')
roles = [service['command'][-1] for service in compose['services'].values() if 'serve' in service.get('command', [])]
if sorted(roles) != ['all', 'auth', 'mcp', 'mcp', 'mcp']:
    fault('docker-compose.yml', f'roles are {roles}')
proxy = read('deploy/haproxy/haproxy.cfg')
for node in re.findall(r'^\s+server \S+ ([\w-]+):', proxy, re.M):
    if node not in compose['services']:
        fault('deploy/haproxy/haproxy.cfg', f'{node} is no service of docker-compose.yml')

settings('Dockerfile', re.findall(r'\b(PORTOLAN_\w+)=', read('Dockerfile')))
for path in [ROOT / 'docs/operating.md', *(ROOT / 'deploy/kubernetes').rglob('*.yaml')]:
    # A name with a star is a family.
    settings(path.relative_to(ROOT), re.findall(r'\b(PORTOLAN_[A-Z_]*[A-Z])\b(?!_?\*)', path.read_text()))
for path in (ROOT / 'deploy/kubernetes').rglob('*.yaml'):
    for document in yaml.safe_load_all(path.read_text()):
        if document['kind'] == 'Deployment':
            spec = document['spec']['template']['spec']
            if spec.get('terminationGracePeriodSeconds', 30) < 45:
                fault(path.name, 'terminationGracePeriodSeconds is below 45')

# Alerts: each has its paragraph; every metric is explained.
page = read('docs/operating.md')
headings = {re.sub(r'[^\w -]', '', title.lower()).strip().replace(' ', '-') for title in re.findall(r'^#+ (.+)$', page, re.M)}
explained = set(re.findall(r'^\| .*$', page, re.M))
explained = {name for line in explained for name in re.findall(r'`([a-z][a-z0-9_]+)(?:\{[^`]*\})?`', line)} | {'up'}


def metrics(expression):
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]', '', expression)
    bare = re.sub(r'\{[^}]*\}', ' {} ', bare)
    bare = re.sub(r'\b(by|on|without|ignoring)\s*\([^)]*\)', '', bare)
    words = re.findall(r'\b[a-z_][a-z0-9_]*\b(?!\s*\()', bare)
    return {re.sub(r'_(bucket|sum)$|(?<=seconds)_count$', '', word) for word in words
            if word not in {'by', 'on', 'and', 'or', 'unless', 'offset', 'bool', 'm', 's'}}


alerts = yaml.safe_load(read('deploy/prometheus/alerts.yml'))
names = set()
used = set()
for group in alerts['groups']:
    for rule in group['rules']:
        name, link = rule['alert'], rule['annotations']['runbook_url']
        names.add(name.lower())
        if not link.endswith(f'/docs/operating.md#{name.lower()}') or name.lower() not in headings:
            fault('deploy/prometheus/alerts.yml', f'{name} has no paragraph in docs/operating.md')
        if rule['labels'].get('severity') not in ('critical', 'warning'):
            fault('deploy/prometheus/alerts.yml', f'{name} has no severity')
        used |= metrics(rule['expr'])
for heading in headings:
    if heading.startswith('portolan') and heading not in names and heading != 'portolan':
        fault('docs/operating.md', f'{heading} is no alert')

dashboard = json.loads(read('deploy/grafana/portolan.json'))
rules, ids = [], set()
shown = set()
for panel in dashboard['panels']:
    if panel['id'] in ids:
        fault('deploy/grafana/portolan.json', f'two panels have the id {panel["id"]}')
    ids.add(panel['id'])
    place = panel['gridPos']
    if place['x'] + place['w'] > 24:
        fault('deploy/grafana/portolan.json', f'{panel["title"]} is beyond the right edge')
    for other in dashboard['panels']:
        there = other['gridPos']
        if other['id'] < panel['id'] and place['x'] < there['x'] + there['w'] and there['x'] < place['x'] + place['w'] \
                and place['y'] < there['y'] + there['h'] and there['y'] < place['y'] + place['h']:
            fault('deploy/grafana/portolan.json', f'{panel["title"]} lies on {other["title"]}')
    for target in panel.get('targets', []):
        expression = target['expr'].replace('$__rate_interval', '5m').replace('$instance', '.*')
        shown |= metrics(expression)
        rules.append({'record': f'panel:{panel["id"]}:{target["refId"].lower()}', 'expr': expression})
used |= shown
for metric in sorted(used - explained):
    fault('docs/operating.md', f'the metric {metric} is in no table')
for metric in sorted(explained & set(re.findall(r'^\| `([a-z0-9_]+)', page, re.M)) - shown - known):
    if metric.endswith(('_total', '_seconds', '_bytes')):
        fault('deploy/grafana/portolan.json', f'{metric} is shown nowhere')
pathlib.Path(sys.argv[1]).write_text(yaml.safe_dump({'groups': [{'name': 'dashboard', 'rules': rules}]}))

if faults:
    sys.exit('\n'.join(faults))
print(f'{len(names)} alerts, {len(dashboard["panels"])} panels, {len(used)} metrics agree with docs/operating.md')
