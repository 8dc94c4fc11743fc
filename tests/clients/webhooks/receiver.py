"""A receiver of webhooks that verifies by the reference library of Standard Webhooks.

It prints `listening <port>`, then one line of JSON for each message. The secrets come on standard
input.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

secrets = []
kept = []
lock = threading.Lock()


def passes(secret, body, headers):
    try:
        Webhook(secret).verify(body, headers)
        return True
    except WebhookVerificationError:
        return False


def say(body, headers):
    message = json.loads(body)
    line = {
        "id": headers["webhook-id"],
        "type": message["type"],
        "data": message["data"],
        "secrets": len(secrets),
        "verified": sum(passes(secret, body, headers) for secret in secrets),
        # A message that was changed must not pass.
        "forged": any(passes(secret, body + " ", headers) for secret in secrets),
        "signatures": len(headers["webhook-signature"].split(" ")),
    }
    print(json.dumps(line), flush=True)


class Receiver(BaseHTTPRequestHandler):
    """Takes every POST with 204."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(204)
        self.end_headers()
        with lock:
            # The challenge comes before its secret is known.
            if secrets:
                say(body, headers)
            else:
                kept.append((body, headers))

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"listening {server.server_address[1]}", flush=True)
for line in sys.stdin:
    with lock:
        secrets.append(line.strip())
        for message in kept:
            say(*message)
        kept.clear()
        print('{"knows":true}', flush=True)
