"""Starts deploy/haproxy/haproxy.cfg and deploy/nginx/portolan.conf on loopback, in front of stand-in nodes, and holds them to what
docs/operating.md says about a proxy. Only addresses and the certificate's place are changed. Needs haproxy, nginx and openssl."""

import http.client
import http.server
import json
import os
import pathlib
import select
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST = 'mcp.example.com'
EVENTS, APART = 4, 0.3


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # the other end went away: that is what is being tested


class Node:
    """A stand-in: the public listener says what arrived, the second one whether it is ready."""

    def __init__(self, name):
        self.name, self.ready, self.died, self.client_left = name, True, 0, threading.Event()
        node = self

        class Public(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *_):
                pass

            def do_POST(self):
                self.rfile.read(int(self.headers.get('Content-Length', 0)))
                if self.path == '/t/die':
                    node.died += 1
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if self.path == '/t/slow':
                    # A call that runs: nothing is written, so only the end of the connection can tell.
                    if select.select([self.connection], [], [], 3)[0]:
                        try:
                            left = not self.connection.recv(1, socket.MSG_PEEK)
                        except ConnectionResetError:
                            left = True
                        if left:
                            node.client_left.set()
                    self.close_connection = True
                    return
                self.tell()

            def do_GET(self):
                if self.path == '/t/events':
                    self.events()
                else:
                    self.tell()

            def tell(self):
                body = json.dumps({
                    'node': node.name,
                    'host': self.headers['Host'],
                    'for': self.headers.get_all('X-Forwarded-For'),
                    'forwarded': self.headers['Forwarded'],
                }).encode()
                self.send_response(200)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def events(self):
                self.send_response(200)
                self.send_header('Content-Type', 'text/event-stream')
                self.send_header('Transfer-Encoding', 'chunked')
                self.end_headers()
                for _ in range(EVENTS):
                    frame = f'data: {time.monotonic()}\n\n'.encode()
                    self.wfile.write(b'%x\r\n%s\r\n' % (len(frame), frame))
                    time.sleep(APART)
                self.wfile.write(b'0\r\n\r\n')

        class Admin(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(200 if self.path == '/readyz' and node.ready else 503)
                self.end_headers()

        self.port, self.admin_port = self.start(Public), self.start(Admin)

    @staticmethod
    def start(handler):
        server = Server(('127.0.0.1', 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Proxy:
    """A running proxy, ended by its process."""

    def __init__(self, command, port, tls=None):
        self.port, self.tls = port, tls
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(('127.0.0.1', port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.process.kill()
                    sys.exit(f'{command[0]} does not listen:\n{self.process.stderr.read().decode()}')
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def begin(self, method, path, body=None):
        if self.tls:
            connection = http.client.HTTPSConnection('127.0.0.1', self.port, timeout=10, context=self.tls)
        else:
            connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=10)
        headers = {'Host': HOST, 'X-Forwarded-For': '6.6.6.6', 'Forwarded': 'for=6.6.6.6'}
        connection.request(method, path, body, headers)
        return connection

    def send(self, method, path, body=None):
        connection = self.begin(method, path, body)
        return connection, connection.getresponse()

    def ask(self, method, path, body=None):
        connection, answer = self.send(method, path, body)
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if answer.status == 200 else None


def hold(condition, what, proof=None):
    if not condition:
        sys.exit(f'FAIL {what}: {proof}')


def common(name, proxy, nodes, auth):
    """What both proxies must do. The third node refuses connections."""
    answers = [proxy.ask('POST', '/t/acme/mcp', b'{}') for _ in range(40)]
    served = [body['node'] for status, body in answers if status == 200]
    hold(len(served) == 40, f'{name}: no POST fails because one node refuses connections', answers)
    hold(all(served.count(node.name) >= 10 for node in nodes), f'{name}: every node gets its share', served)
    told = answers[0][1]
    hold(told['for'] == ['127.0.0.1'] and told['forwarded'] is None, f'{name}: the address is ours alone', told)
    hold(told['host'] == HOST, f'{name}: Host arrives as it was sent', told)

    for path, expected in [
        ('/', auth.name), ('/oauth/jwks.json', auth.name), ('/api/v1/me', auth.name), ('/tools', auth.name),
        ('/.well-known/oauth-authorization-server', auth.name),
        ('/t/acme/x/mcp', 'mcp'), ('/mcp', 'mcp'), ('/mcp/', 'mcp'), ('/sse', 'mcp'), ('/messages?sessionId=x', 'mcp'),
        ('/mcp/x', auth.name), ('/.well-known/oauth-protected-resource/t/acme/mcp', 'mcp'),
    ]:
        hold(proxy.ask('GET', path)[1]['node'].startswith(expected), f'{name}: {path} goes to {expected}')

    status, _ = proxy.ask('POST', '/t/die', b'{}')
    died = sum(node.died for node in nodes)
    hold(status == 502 and died == 1, f'{name}: a POST that was sent is not sent again', (status, died))

    connection, answer = proxy.send('GET', '/t/events')
    late = []
    for line in answer:
        if line.startswith(b'data: '):
            late.append(time.monotonic() - float(line[6:]))
    connection.close()
    hold(len(late) == EVENTS and max(late) < APART / 2, f'{name}: events are not held back', late)

    for node in nodes:
        node.client_left.clear()
    connection = proxy.begin('POST', '/t/slow', b'{}')
    time.sleep(0.2)
    connection.close()
    until = time.monotonic() + 2
    while not any(node.client_left.is_set() for node in nodes) and time.monotonic() < until:
        time.sleep(0.05)
    hold(any(node.client_left.is_set() for node in nodes), f'{name}: a node hears that its client left')
    print(f'{name}: events at most {max(late) * 1000:.0f} ms late; routes, addresses, one POST, aborts as promised')


def haproxy(folder, nodes, auth):
    port = free_port()
    text = (ROOT / 'deploy/haproxy/haproxy.cfg').read_text()
    for place, node in [('mcp-1 mcp-1', nodes[0]), ('mcp-2 mcp-2', nodes[1]), ('auth-1 auth', auth)]:
        text = text.replace(f'server {place}:8080', f'server {place.split()[0]} 127.0.0.1:{node.port} port {node.admin_port}')
    # Ready and yet refusing connections: what a node looks like until the checks have noticed.
    text = text.replace('server mcp-3 mcp-3:8080', f'server mcp-3 127.0.0.1:{free_port()} port {nodes[0].admin_port}')
    text = text.replace('bind :8080', f'bind 127.0.0.1:{port}').replace('maxconn 50000', 'maxconn 200')
    file = folder / 'haproxy.cfg'
    file.write_text(text)
    subprocess.run(['haproxy', '-c', '-q', '-f', file], check=True)
    proxy = Proxy(['haproxy', '-db', '-f', str(file)], port)
    try:
        common('haproxy', proxy, nodes, auth)
        nodes[0].ready = False  # the third stand-in shares this readiness
        began = time.monotonic()
        while {proxy.ask('GET', '/t/a')[1]['node'] for _ in range(6)} != {nodes[1].name}:
            hold(time.monotonic() - began < 8, 'haproxy: a node that is not ready gets nothing')
            time.sleep(0.2)
        out = time.monotonic() - began
        nodes[0].ready = True
        while nodes[0].name not in {proxy.ask('GET', '/t/a')[1]['node'] for _ in range(6)}:
            hold(time.monotonic() - began < 16, 'haproxy: a node that is ready again is used again')
            time.sleep(0.2)
        print(f'haproxy: a node that is not ready got nothing after {out:.1f} s, and is used again when it is ready')
    finally:
        proxy.stop()


def nginx(folder, nodes, auth):
    key, certificate = folder / 'key.pem', folder / 'certificate.pem'
    subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
         '-keyout', key, '-out', certificate, '-subj', f'/CN={HOST}'],
        check=True, stderr=subprocess.DEVNULL)
    port, plain = free_port(), free_port()
    text = (ROOT / 'deploy/nginx/portolan.conf').read_text()
    for address, target in [('11', nodes[0].port), ('12', nodes[1].port), ('13', free_port()), ('10', auth.port)]:
        text = text.replace(f'10.0.0.{address}:8080', f'127.0.0.1:{target}')
    text = text.replace('/etc/nginx/tls/portolan.crt', str(certificate)).replace('/etc/nginx/tls/portolan.key', str(key))
    text = text.replace('listen 443 ', f'listen 127.0.0.1:{port} ').replace('listen 80;', f'listen 127.0.0.1:{plain};')
    (folder / 'portolan.conf').write_text(text)
    user = 'user root;' if os.getuid() == 0 else ''
    temporary = ''.join(f'{kind}_temp_path {folder}/{kind};' for kind in ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'])
    file = folder / 'nginx.conf'
    file.write_text(
        f'{user} pid {folder}/nginx.pid; error_log stderr; worker_processes 1; events {{ worker_connections 200; }}\n'
        f'http {{ access_log off; {temporary} include {folder}/portolan.conf; }}\n')
    subprocess.run(['nginx', '-t', '-q', '-e', 'stderr', '-p', folder, '-c', file], check=True)
    # The certificate is its own authority; the name is checked like a client would, against Host.
    tls = ssl.create_default_context(cafile=certificate)
    tls.check_hostname = False
    proxy = Proxy(['nginx', '-e', 'stderr', '-p', str(folder), '-c', str(file), '-g', 'daemon off;'], port, tls)
    try:
        common('nginx', proxy, nodes, auth)
    finally:
        proxy.stop()


def main():
    nodes, auth = [Node('mcp-1'), Node('mcp-2')], Node('auth')
    for prove in (haproxy, nginx):
        for node in nodes:
            node.died = 0
        with tempfile.TemporaryDirectory() as folder:
            prove(pathlib.Path(folder), nodes, auth)


main()
