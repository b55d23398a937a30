"""Locations under an access token, which the client refreshes."""
from __future__ import annotations

import logging
import os
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Callable, Mapping, Optional, Union

from ._handle import JSON, Handle


@dataclass(frozen=True)
class AuthorizationEvent:
    """The result of a request for a new access token. ``response`` may hold tokens: never log it."""

    is_success: bool
    status: int
    response: Mapping[str, JSON] = field(repr=False)
    error: Optional[str]


@dataclass(frozen=True)
class UploadEvent:
    """One attempt to upload records."""

    is_success: bool
    status: int
    error: Optional[str]


class LocationClient(Handle):
    """Records locations, and retries each upload until a server has accepted it.

    ``http``, ``authorization``, ``persistence``, ``network_retry`` and ``context`` are as in ``countersign.h``.
    """

    def __init__(
        self, *, http: Optional[Mapping[str, JSON]] = None, authorization: Optional[Mapping[str, JSON]] = None,
        persistence: Optional[Mapping[str, JSON]] = None, keeps_tokens: bool = False,
        on_authorization: Optional[Callable[[AuthorizationEvent], None]] = None,
        on_upload: Optional[Callable[[UploadEvent], None]] = None,
        data_directory: Optional[Union[str, os.PathLike[str]]] = None, instance_name: Optional[str] = None,
        network_retry: Optional[Mapping[str, JSON]] = None, context: Optional[Mapping[str, JSON]] = None, logger: Optional[logging.Logger] = None,
    ) -> None:
        self._on_authorization = on_authorization
        self._on_upload = on_upload
        super().__init__("access_token", {
            "http": http, "authorization": authorization, "persistence": persistence, "keepsTokens": keeps_tokens,
            "dataDirectory": os.fspath(data_directory) if data_directory is not None else None,
            "instanceName": instance_name, "networkRetry": network_retry, "context": context,
        }, logger=logger)

    def insert(self, record: Mapping[str, JSON]) -> Future[str]:
        """Stores a record with at least ``coords`` (latitude, longitude). The result is its uuid, once on disk."""
        return self._send("insert", record)

    def configure(self, *, http: Optional[Mapping[str, JSON]] = None, authorization: Optional[Mapping[str, JSON]] = None,
                  persistence: Optional[Mapping[str, JSON]] = None) -> None:
        """Changes the given members of ``http``, ``authorization`` and ``persistence``; others stay."""
        self._wait("configure", http=http, authorization=authorization, persistence=persistence)

    def sync(self, timeout: Optional[float] = None) -> list[JSON]:
        """Sends queued records; returns the records that the server accepted."""
        found: list[JSON] = self._wait("sync", timeout)
        return found

    def count(self) -> int:
        """The number of queued records."""
        return int(self._wait("count"))

    def records(self) -> list[JSON]:
        """Queued records, oldest first."""
        found: list[JSON] = self._wait("records")
        return found

    def remove(self, uuid: str) -> bool:
        """Removes a queued record; False if not found."""
        return bool(self._wait("remove", uuid=uuid))

    def remove_all(self) -> None:
        """Removes all records; tokens stay."""
        self._wait("removeAll")

    def authorization_state(self) -> dict[str, JSON]:
        """Whether requests can be authorized: ``kind``, ``reason``, and ``retryIn`` in seconds."""
        found: dict[str, JSON] = self._wait("authorizationState")
        return found

    def access_token(self, replacing: Optional[str] = None) -> str:
        """A token for the app's own requests. ``replacing``: a rejected token. Never log a token."""
        return str(self._wait("accessToken", replacing=replacing))

    def forget_tokens(self) -> None:
        """Deletes the tokens; records stay."""
        self._wait("forgetTokens")

    def _heard(self, event: Mapping[str, JSON]) -> None:
        if event["event"] == "authorization" and self._on_authorization:
            self._on_authorization(
                AuthorizationEvent(event["success"], event["status"], event["response"], event["error"]))
        elif event["event"] == "upload" and self._on_upload:
            self._on_upload(UploadEvent(event["success"], event["status"], event["error"]))
