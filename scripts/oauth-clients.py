"""Gets, refreshes and revokes tokens through unchanged OAuth clients, and delivers with what they got: Authlib,
requests-oauthlib and the OAuth manager of Segment's analytics-python.

Usage: oauth-clients.py COUNTERSIGN_BINARY
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # requests-oauthlib wants https; the gateway is on this machine

import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.jose import JsonWebKey, jwt
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from requests_oauthlib import OAuth2Session as OAuthlibSession
import segment.analytics.client as segment

LIFETIME = 2  # oauthlib rounds up when a token expires, as the gateway does


class Fixture:
    def __init__(self, binary):
        self.binary = binary
        self.folder = tempfile.mkdtemp(prefix="countersign-")
        self.data = self.folder + "/data"
        self.key = self.run("app", "create", "shop").strip()
        self.run("enforcement", "set", "shop", "required", "--yes")
        self.run("app", "tokens", "shop", "--access-seconds", str(LIFETIME), "--registration", "open")
        subprocess.run([binary, "key", "generate", "--out", self.folder], check=True, capture_output=True)
        self.gateway = subprocess.Popen(
            [binary, "serve", "--data", self.data, "--port", "0", "--log-level", "info"], stdout=subprocess.PIPE,
            stderr=open(self.folder + "/log", "w"), text=True)
        self.url = self.gateway.stdout.readline().strip()
        if not re.match(r"http://", self.url):
            raise SystemExit("the gateway did not start")
        self.secrets = []

    def run(self, *arguments):
        done = subprocess.run([self.binary, *arguments, "--data", self.data], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{arguments}: {done.stderr}")
        return done.stdout

    def client(self, *arguments):
        made = json.loads(self.run("client", "create", "shop", "--json", *arguments))
        time.sleep(1)  # a running gateway sees it within a second
        return made["client_id"], made.get("client_secret")

    def session(self, user, *arguments):
        return self.run("session", "create", "shop", "--user", user, *arguments).strip()

    def events(self, user):
        database = sqlite3.connect(f"file:{self.data}/events.sqlite?mode=ro", uri=True)
        return database.execute("SELECT count(*), count(DISTINCT message_id) FROM event WHERE user_id LIKE ?",
                                (user,)).fetchone()

    def track(self, http, user, number):
        event = {"type": "track", "event": "Order Placed", "userId": user, "messageId": f"{user}-{number}"}
        return http.post(self.url + "/v1/batch", json={"batch": [event], "writeKey": self.key})

    def stop(self):
        self.gateway.send_signal(signal.SIGTERM)
        code = self.gateway.wait(timeout=20)
        log = open(self.folder + "/log").read()
        shutil.rmtree(self.folder)
        leaked = [secret for secret in self.secrets if secret in log]
        if code != 0 or leaked:
            raise SystemExit(f"the gateway ended with {code} and logged {len(leaked)} secrets")


def check(what, holds, detail=""):
    if not holds:
        raise SystemExit(f"oauth-clients: {what}: {detail}")
    print(f"{what}: ok")


def metadata(fixture):
    document = requests.get(fixture.url + "/.well-known/oauth-authorization-server").json()
    described = AuthorizationServerMetadata(document)
    # All that Authlib checks but https, which a gateway without a proxy does not have.
    for name in described.REGISTRY_KEYS:
        if name not in ("issuer", "token_endpoint", "jwks_uri", "revocation_endpoint"):
            getattr(described, f"validate_{name}")()
    check("Authlib takes the metadata", document["issuer"] == fixture.url, document)
    return document


def authlib(fixture, document):
    client_id, secret = fixture.client()
    for method in ["client_secret_basic", "client_secret_post"]:
        user = f"authlib-{method}"
        first = fixture.session(user, "--client", client_id)
        updates = []
        http = AuthlibSession(
            client_id, secret, token_endpoint_auth_method=method, token_endpoint=document["token_endpoint"], leeway=0,
            token={"access_token": "none", "refresh_token": first, "expires_at": 1, "token_type": "Bearer"},
            update_token=lambda token, refresh_token=None, access_token=None: updates.append(token))
        for number in range(3):
            status = fixture.track(http, user, number).status_code
            check(f"Authlib delivers ({method}, {number})", status == 200, status)
            time.sleep(LIFETIME + 1.5)
        tokens = {first} | {token["refresh_token"] for token in updates}
        check(f"Authlib refreshes by itself ({method})", len(updates) == 3 and len(tokens) == 4, len(updates))
        check(f"events are there once ({method})", fixture.events(user) == (3, 3), fixture.events(user))
        done = http.revoke_token(document["revocation_endpoint"], token=updates[-1]["refresh_token"],
                                 token_type_hint="refresh_token")
        check(f"Authlib revokes ({method})", done.status_code == 200, done.status_code)
        try:
            http.refresh_token(document["token_endpoint"], refresh_token=updates[-1]["refresh_token"])
            check("a revoked token is refused", False)
        except Exception as error:
            check(f"a revoked token is refused ({method})", getattr(error, "error", "") == "invalid_grant", error)
        fixture.secrets += [token["access_token"] for token in updates] + list(tokens)
    http = AuthlibSession(client_id, secret, leeway=0)
    token = http.fetch_token(document["token_endpoint"], grant_type="client_credentials", scope="tracking_api:write")
    keys = JsonWebKey.import_key_set(requests.get(document["jwks_uri"]).json())
    claims = jwt.decode(token["access_token"], keys)
    check("Authlib verifies an access token by the published keys",
          claims["iss"] == document["issuer"] and claims["sub"] == client_id and claims["aud"] == "shop", dict(claims))
    check("a client's own token delivers", fixture.track(http, "authlib-app", 1).status_code == 200)
    key_id, _ = fixture.client("--public-key", fixture.folder + "/public.pem")
    http = AuthlibSession(key_id, open(fixture.folder + "/private.pem").read(), leeway=0,
                          token_endpoint_auth_method=PrivateKeyJWT(document["token_endpoint"]))
    token = http.fetch_token(document["token_endpoint"], grant_type="client_credentials")
    check("Authlib gets a token by private_key_jwt", fixture.track(http, "authlib-key", 1).status_code == 200)
    fixture.secrets += [secret, token["access_token"]]


def oauthlib(fixture, document):
    client_id, secret = fixture.client()
    cases = [("confidential", ["--client", client_id], {"client_id": client_id, "client_secret": secret}, client_id),
             ("device", [], {}, "shop")]
    for name, arguments, extra, identity in cases:
        user = f"oauthlib-{name}"
        saved = []
        http = OAuthlibSession(
            identity, auto_refresh_url=document["token_endpoint"], auto_refresh_kwargs=extra, token_updater=saved.append,
            token={"access_token": "none", "refresh_token": fixture.session(user, *arguments), "expires_in": -1,
                   "token_type": "Bearer"})
        for number in range(3):
            status = fixture.track(http, user, number).status_code
            check(f"requests-oauthlib delivers ({name}, {number})", status == 200, status)
            http.token = saved[-1]
            time.sleep(LIFETIME + 1.5)
        check(f"requests-oauthlib refreshes by itself ({name})", len(saved) == 3, len(saved))
        check(f"events are there once ({name})", fixture.events(user) == (3, 3), fixture.events(user))
        fixture.secrets += [token["access_token"] for token in saved] + [token["refresh_token"] for token in saved]


def segments(fixture):
    client_id, _ = fixture.client("--public-key", fixture.folder + "/public.pem")
    errors = []
    client = segment.Client(fixture.key, host=fixture.url, oauth_client_id=client_id, oauth_key_id="key-1",
                            oauth_client_key=open(fixture.folder + "/private.pem").read(),
                            oauth_auth_server=fixture.url + "/oauth",
                            on_error=lambda error, items: errors.append(error))
    for number in range(100):
        client.track(f"segment-user-{number % 7}", "Order Placed", {"number": number})
    client.flush()
    client.join()
    check("analytics-python gets tokens and delivers", not errors and fixture.events("segment-user-%") == (100, 100),
          errors or fixture.events("segment-user-%"))
    fixture.secrets.append(client.oauth_manager.token)


def main(binary):
    fixture = Fixture(binary)
    try:
        document = metadata(fixture)
        authlib(fixture, document)
        oauthlib(fixture, document)
        segments(fixture)
    finally:
        fixture.stop()
    print("no token and no secret is in the log: ok")


main(sys.argv[1])
