"""The client for events that are sent with a signed token of their user."""
from __future__ import annotations

import logging
import os
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Union

from ._handle import JSON, FlushResult, Handle


@dataclass(frozen=True)
class TokenRequest:
    """A request for a user's token. ``reason`` is ``missing``, ``expired`` or ``rejected``; the last has a ``code``."""

    user_id: str
    reason: str
    code: Optional[int]


@dataclass(frozen=True)
class AuthenticationFailure:
    """A token that a server did not accept, or that could not be obtained."""

    code: int
    """A code of docs/reference/error-codes.md, also if the device detected the failure (see ``origin``)."""
    reason: str
    user_id: Optional[str]
    token: Optional[str] = field(repr=False)
    """A credential: never log it."""
    is_optional: bool
    """Whether the server accepted the events anyway."""
    origin: str
    occurrences: int
    clock_skew: Optional[float]
    request_time: float


class Client(Handle):
    """Records the actions of users, and delivers each event exactly once to a gateway, under its user's token.

    ``token_provider`` is called on a thread of its own when a token is missing, expires or is rejected by the
    gateway. It returns the token, or None. Exceptions and values of other types are logged, and count as None. The
    settings from ``instance_name`` to ``context`` are as in ``countersign.h``.
    """

    def __init__(
        self, endpoint: str, write_key: str, *,
        token_provider: Optional[Callable[[TokenRequest], Optional[str]]] = None,
        on_authentication_failure: Optional[Callable[[AuthenticationFailure], None]] = None,
        data_directory: Optional[Union[str, os.PathLike[str]]] = None, instance_name: Optional[str] = None,
        request_timeout: Optional[float] = None, token_provider_timeout: Optional[float] = None,
        session_timeout: Optional[float] = None, batch_events: Optional[int] = None, batch_bytes: Optional[int] = None,
        flush_policy: Optional[Union[str, Mapping[str, JSON]]] = None, limits: Optional[Mapping[str, JSON]] = None,
        network_retry: Optional[Mapping[str, JSON]] = None, authentication_retry: Optional[Mapping[str, JSON]] = None,
        headers: Optional[Mapping[str, str]] = None, context: Optional[Mapping[str, JSON]] = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        self._on_failure = on_authentication_failure

        def provide(request: Mapping[str, Any]) -> Optional[str]:
            assert token_provider
            return token_provider(TokenRequest(request["userId"], request["reason"], request.get("code")))

        super().__init__("signed_user", {
            "endpoint": endpoint, "writeKey": write_key, "instanceName": instance_name,
            "dataDirectory": os.fspath(data_directory) if data_directory is not None else None,
            "requestTimeout": request_timeout, "tokenProviderTimeout": token_provider_timeout,
            "sessionTimeout": session_timeout, "batchEvents": batch_events, "batchBytes": batch_bytes,
            "flushPolicy": flush_policy, "limits": limits, "networkRetry": network_retry,
            "authenticationRetry": authentication_retry, "headers": headers, "context": context,
        }, logger=logger, provider=provide if token_provider else None)

    def identify(self, user_id: str, token: Optional[str] = None,
                 traits: Optional[Mapping[str, JSON]] = None) -> Future[Optional[str]]:
        """Sets the current user. The result is the event's id, or None if no event was recorded."""
        return self._call("identify", userId=user_id, token=token, traits=traits)

    def change_user(self, user_id: str, token: Optional[str] = None) -> None:
        """As :meth:`identify`, without an event."""
        self._wait("changeUser", userId=user_id, token=token)

    def set_token(self, token: str) -> None:
        """Sets a new token of the current user. Events that wait for a token are sent at once."""
        self._wait("setToken", token=token)

    @property
    def user_id(self) -> Optional[str]:
        """The current user; None without a user."""
        found: Optional[str] = self._wait("userId")
        return found

    def track(self, event: str, properties: Optional[Mapping[str, JSON]] = None, *, kind: str = "track") -> Future[str]:
        """Records an event. The result is its id, once on disk. ``kind``: track, page, screen, group or alias."""
        return self._call("track", event=event, kind=kind, properties=properties)

    def flush(self, timeout: Optional[float] = None) -> FlushResult:
        """Sends everything that can be sent now, and returns when that is done."""
        return FlushResult._of(self._wait("flush", timeout))

    def log_out(self, timeout: Optional[float] = None) -> FlushResult:
        """Sends the queued events under the user's token, then deletes the token."""
        return FlushResult._of(self._wait("logOut", timeout))

    def start_session(self) -> None:
        """Begins a session. Retries events that are paused after too many rejected tokens."""
        self._wait("startSession")

    def end_session(self) -> None:
        self._wait("endSession")

    def wipe(self) -> None:
        """Removes all events, tokens, the user and the id of this device."""
        self._wait("wipe")

    def opt_out(self) -> None:
        """Removes all data and stops recording, in later runs too."""
        self._wait("optOut")

    def opt_in(self) -> None:
        """Records again after :meth:`opt_out`."""
        self._wait("optIn")

    def _heard(self, event: Mapping[str, JSON]) -> None:
        if event["event"] == "authentication_failure" and self._on_failure:
            self._on_failure(AuthenticationFailure(
                event["code"], event["reason"], event["userId"], event["token"], event["optional"], event["origin"],
                event["occurrences"], event["clockSkew"], event["requestTime"]))
