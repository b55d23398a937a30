"""Tests the token service with unchanged OAuth clients, which get, refresh and revoke tokens and deliver events: Authlib,
requests-oauthlib, and the OAuth manager of Segment's analytics-python."""

import json
import os
import time

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # requests-oauthlib wants https; the gateway is on this machine.

import requests  # noqa: E402
import segment.analytics.client as segment  # noqa: E402
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession  # noqa: E402
from authlib.jose import JsonWebKey, jwt  # noqa: E402
from authlib.oauth2.rfc7523 import PrivateKeyJWT  # noqa: E402
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata  # noqa: E402
from requests_oauthlib import OAuth2Session as OAuthlibSession  # noqa: E402

from .common import check, parse  # noqa: E402
from .gateway import Gateway  # noqa: E402

LIFETIME = 2  # Seconds. oauthlib and the gateway round the expiry up.


class Issuer(Gateway):
    """A gateway that requires tokens of its token service, which live for 2 s. `secrets` lists texts that its log must not have."""

    def __init__(self, program):
        super().__init__(program, level="info")
        self.secrets = []
        self.app(enforcement="required")
        self.run("app", "tokens", "shop", "--access-seconds", LIFETIME, "--registration", "open")
        self.pairs("good").start()

    def client(self, *arguments):
        made = json.loads(self.run("client", "create", "shop", "--json", *arguments))
        time.sleep(1)  # A running gateway loads a new client within a second.
        return made["client_id"], made.get("client_secret")

    def session(self, user, *arguments):
        return self.run("session", "create", "shop", "--user", user, *arguments)

    def events(self, user):
        return self.rows("SELECT count(*), count(DISTINCT message_id) FROM event WHERE user_id LIKE ?", user)[0]

    def post(self, http, user, number):
        event = {"type": "track", "event": "Order Placed", "userId": user, "messageId": f"{user}-{number}"}
        return http.post(self.url + "/v1/batch", json={"batch": [event], "writeKey": self.key}).status_code


def metadata(gateway):
    document = requests.get(gateway.url + "/.well-known/oauth-authorization-server").json()
    described = AuthorizationServerMetadata(document)
    # Authlib requires https of these four URLs, and this gateway has http.
    for name in set(described.REGISTRY_KEYS) - {"issuer", "token_endpoint", "jwks_uri", "revocation_endpoint"}:
        getattr(described, f"validate_{name}")()
    check("Authlib accepts the metadata", document["issuer"] == gateway.url, document)
    return document


def authlib(gateway, document):
    identity, secret = gateway.client()
    for method in ["client_secret_basic", "client_secret_post"]:
        user, updates = f"authlib-{method}", []
        first = gateway.session(user, "--client", identity)
        http = AuthlibSession(
            identity, secret, token_endpoint_auth_method=method, token_endpoint=document["token_endpoint"], leeway=0,
            token={"access_token": "none", "refresh_token": first, "expires_at": 1, "token_type": "Bearer"},
            update_token=lambda token, refresh_token=None, access_token=None: updates.append(token))
        for number in range(3):
            status = gateway.post(http, user, number)
            check(f"Authlib delivers ({method}, {number})", status == 200, status)
            time.sleep(LIFETIME + 1.5)
        tokens = {first} | {token["refresh_token"] for token in updates}
        check(f"Authlib refreshes by itself ({method})", len(updates) == 3 and len(tokens) == 4, len(updates))
        check(f"events are stored once ({method})", gateway.events(user) == (3, 3), gateway.events(user))
        last = updates[-1]["refresh_token"]
        done = http.revoke_token(document["revocation_endpoint"], token=last, token_type_hint="refresh_token")
        check(f"Authlib revokes ({method})", done.status_code == 200, done.status_code)
        try:
            http.refresh_token(document["token_endpoint"], refresh_token=last)
            check("a revoked token is rejected", False)
        except Exception as error:
            check(f"a revoked token is rejected ({method})", getattr(error, "error", "") == "invalid_grant", error)
        gateway.secrets += [token["access_token"] for token in updates] + list(tokens)
    http = AuthlibSession(identity, secret, leeway=0)
    token = http.fetch_token(document["token_endpoint"], grant_type="client_credentials", scope="tracking_api:write")
    claims = jwt.decode(token["access_token"], JsonWebKey.import_key_set(requests.get(document["jwks_uri"]).json()))
    check("Authlib verifies an access token by the published keys",
          claims["iss"] == document["issuer"] and claims["sub"] == identity and claims["aud"] == "shop", dict(claims))
    check("a client's own token delivers", gateway.post(http, "authlib-app", 1) == 200)
    by_key, _ = gateway.client("--public-key", gateway.path("good", "public.pem"))
    http = AuthlibSession(by_key, gateway.read("good", "private.pem"), leeway=0,
                          token_endpoint_auth_method=PrivateKeyJWT(document["token_endpoint"]))
    token = http.fetch_token(document["token_endpoint"], grant_type="client_credentials")
    check("Authlib gets a token by private_key_jwt", gateway.post(http, "authlib-key", 1) == 200)
    gateway.secrets += [secret, token["access_token"]]


def oauthlib(gateway, document):
    identity, secret = gateway.client()
    for name, arguments, extra, used in [("confidential", ["--client", identity], {"client_id": identity, "client_secret": secret}, identity),
                                         ("device", [], {}, "shop")]:
        user, saved = f"oauthlib-{name}", []
        http = OAuthlibSession(
            used, auto_refresh_url=document["token_endpoint"], auto_refresh_kwargs=extra, token_updater=saved.append,
            token={"access_token": "none", "refresh_token": gateway.session(user, *arguments), "expires_in": -1, "token_type": "Bearer"})
        for number in range(3):
            check(f"requests-oauthlib delivers ({name}, {number})", gateway.post(http, user, number) == 200)
            http.token = saved[-1]
            time.sleep(LIFETIME + 1.5)
        check(f"requests-oauthlib refreshes by itself ({name})", len(saved) == 3, len(saved))
        check(f"events are stored once ({name})", gateway.events(user) == (3, 3), gateway.events(user))
        gateway.secrets += [token[kind] for token in saved for kind in ("access_token", "refresh_token")]


def segments(gateway):
    identity, _ = gateway.client("--public-key", gateway.path("good", "public.pem"))
    errors = []
    client = segment.Client(gateway.key, host=gateway.url, oauth_client_id=identity, oauth_key_id="key-1",
                            oauth_client_key=gateway.read("good", "private.pem"), oauth_auth_server=gateway.url + "/oauth",
                            on_error=lambda error, items: errors.append(error))
    for number in range(100):
        client.track(f"segment-user-{number % 7}", "Order Placed", {"number": number})
    client.flush()
    client.join()
    found = gateway.events("segment-user-%")
    check("analytics-python gets tokens and delivers", not errors and found == (100, 100), errors or found)
    gateway.secrets.append(client.oauth_manager.token)


def main(arguments):
    with Issuer(parse(arguments, "oauth", __doc__).countersign) as gateway:
        document = metadata(gateway)
        authlib(gateway, document)
        oauthlib(gateway, document)
        segments(gateway)
        check("the gateway stops", gateway.stop() == 0)
        check("the log has no token and no secret", not any(secret in gateway.log.read_text() for secret in gateway.secrets))
