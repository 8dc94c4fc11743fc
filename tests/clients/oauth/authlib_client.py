"""Authlib: code with PKCE, refresh, revocation, client credentials by secret and by key."""

import base64
import json
import os
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

from authlib.integrations.httpx_client import OAuth2Client
from authlib.integrations.base_client import OAuthError
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from cryptography.hazmat.primitives.serialization import load_der_private_key
import httpx
from joserfc.jwk import ECKey

given = json.loads(os.environ["PORTOLAN_GIVEN"])
failures = 0


def check(holds, sentence, found=None):
    global failures
    failures += not holds
    print(f"{'ok' if holds else 'not ok'} - {sentence}{'' if holds else f'; found {found!r}'}", flush=True)


arrived = []


class Callback(BaseHTTPRequestHandler):
    def do_GET(self):
        arrived.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"You can close this window.")

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Callback)
redirect_uri = f"http://127.0.0.1:{server.server_port}/callback"
about = httpx.get(f"{given['issuer']}/.well-known/oauth-authorization-server").json()
registered = httpx.post(
    about["registration_endpoint"],
    json={"client_name": "Authlib", "redirect_uris": [redirect_uri], "token_endpoint_auth_method": "none"},
).json()

client = OAuth2Client(
    registered["client_id"],
    token_endpoint_auth_method="none",
    redirect_uri=redirect_uri,
    scope="mcp offline_access",
    code_challenge_method="S256",
)
verifier = uuid.uuid4().hex * 2
url, state = client.create_authorization_url(
    about["authorization_endpoint"], code_verifier=verifier, resource=given["mcp_url"]
)
print(f"open {url}", flush=True)
while not arrived:
    server.handle_request()
token = client.fetch_token(
    about["token_endpoint"],
    authorization_response=redirect_uri + arrived[0].removeprefix("/callback"),
    code_verifier=verifier,
    state=state,
)
check(token["token_type"] == "Bearer" and "mcp" in token["scope"], "a token", token)
first = token["refresh_token"]
token = client.refresh_token(about["token_endpoint"], refresh_token=first)
check(token["refresh_token"] != first, "K8: rotated")
check(create_s256_code_challenge(verifier) in url, "A5: S256")

for method in ("client_secret_basic", "client_secret_post"):
    account = OAuth2Client(
        given["by_secret"]["id"], given["by_secret"]["secret"], token_endpoint_auth_method=method
    )
    granted = account.fetch_token(about["token_endpoint"], grant_type="client_credentials", resource=given["mcp_url"])
    check(granted["expires_in"] == 900 and "refresh_token" not in granted, f"T12 by {method}", granted)

key = ECKey.import_key(load_der_private_key(base64.b64decode(given["by_key"]["private_key"]), None))


def by_key(claims):
    # The library's own assertions live an hour, which is longer than is taken here: the date is set.
    account = OAuth2Client(given["by_key"]["id"], key, token_endpoint_auth_method="private_key_jwt")
    account.register_client_auth_method(
        PrivateKeyJWT(about["token_endpoint"], claims=claims, headers={"kid": given["by_key"]["kid"]}, alg="ES256")
    )
    return account.fetch_token(about["token_endpoint"], grant_type="client_credentials")


# Its own audience is the token endpoint, which is not taken (REVIEW-S-17): the issuer is named.
claims = {"exp": int(time.time()) + 120, "aud": about["issuer"]}
check("access_token" in by_key(claims), "C13: an assertion made by Authlib proves the account")
try:
    # It keeps the jti in the claims that it was given, and sends the same one again.
    by_key(claims)
    check(False, "C13: an assertion is good once")
except OAuthError as error:
    check(error.error == "invalid_client", "C13: an assertion is good once", error)

client.revoke_token(about["revocation_endpoint"], token=token["refresh_token"])
refused = httpx.post(
    about["token_endpoint"],
    data={
        "grant_type": "refresh_token",
        "refresh_token": token["refresh_token"],
        "client_id": registered["client_id"],
    },
)
check(refused.status_code == 400 and refused.json()["error"] == "invalid_grant", "R4: revoked", refused.text)
print("1..done", flush=True)
sys.exit(1 if failures else 0)
