"""Events and queries of a project of Bloomreach Engagement."""
from __future__ import annotations

import logging
import os
from typing import Callable, Mapping, Optional, Sequence, Union

from ._handle import JSON, CountersignError, FlushResult, Handle


class BloomreachClient(Handle):
    """Records customers and events, and fetches content. Methods that record return when the event is in memory.

    ``authorization_provider`` is called on a thread of its own for each request that needs a customer token.
    ``configuration`` has further members, as in ``countersign.h``, such as ``flushMode`` and ``projectMapping``.
    """

    def __init__(
        self, project_token: str, api_key: str, base_url: str, *,
        authorization_provider: Optional[Callable[[], Optional[str]]] = None,
        on_delivery_failure: Optional[Callable[[CountersignError], None]] = None,
        data_directory: Optional[Union[str, os.PathLike[str]]] = None, logger: Optional[logging.Logger] = None,
        **configuration: JSON,
    ) -> None:
        self._on_delivery_failure = on_delivery_failure
        provide = authorization_provider
        super().__init__("bloomreach", {
            "projectToken": project_token, "authorizationToken": api_key, "baseUrl": base_url,
            "advancedAuthEnabled": provide is not None,
            "dataDirectory": os.fspath(data_directory) if data_directory is not None else None, **configuration,
        }, logger=logger, provider=(lambda _: provide()) if provide else None)

    def identify_customer(self, customer_ids: Mapping[str, str], properties: Optional[Mapping[str, JSON]] = None,
                          timestamp: Optional[float] = None) -> None:
        """Adds ids to the customer and records an update of the customer."""
        self._wait("identifyCustomer", customerIds=customer_ids, properties=properties, timestamp=timestamp)

    def track_customer(self, properties: Mapping[str, JSON], timestamp: Optional[float] = None) -> None:
        """Records properties of the customer."""
        self._wait("trackCustomer", properties=properties, timestamp=timestamp)

    def track_event(self, event_type: str, properties: Optional[Mapping[str, JSON]] = None,
                    timestamp: Optional[float] = None) -> None:
        """Records an event of the customer."""
        self._wait("trackEvent", eventType=event_type, properties=properties, timestamp=timestamp)

    def track_campaign_click(self, url: str, timestamp: Optional[float] = None) -> None:
        """Records that the app was opened through a campaign's link."""
        self._wait("trackCampaignClick", url=url, timestamp=timestamp)

    def track_push_token(self, token: Optional[str]) -> None:
        """Records the device's push token; None when the permission was revoked."""
        self._wait("trackPushToken", token=token)

    def anonymize(self, **project: JSON) -> None:
        """Starts over with a new, anonymous customer. ``project`` changes the project, as in ``countersign.h``."""
        self._wait("anonymize", **project)

    def flush(self, timeout: Optional[float] = None) -> FlushResult:
        """Sends everything that can be sent now, and returns when that is done."""
        return FlushResult._of(self._wait("flush", timeout))

    def start_session(self) -> None:
        """Begins a session, and retries projects that are paused after too many rejections."""
        self._wait("startSession")

    def end_session(self) -> None:
        self._wait("endSession")

    @property
    def customer_ids(self) -> dict[str, str]:
        """The ids of the customer, including ``cookie``."""
        found: dict[str, str] = self._wait("customerIds")
        return found

    def fetch_attributes(self, attributes: Sequence[Mapping[str, str]]) -> list[dict[str, JSON]]:
        """Fetches ``{"type": "property", "property": name}`` or ``{"type": "id", "id": name}``.

        Each result has ``success``, ``error`` and ``value``.
        """
        found: list[dict[str, JSON]] = self._wait("fetchAttributes", attributes=list(attributes))
        return found

    def fetch_consents(self) -> list[dict[str, JSON]]:
        """The project's categories of consent."""
        found: list[dict[str, JSON]] = self._wait("fetchConsents")
        return found

    def fetch_in_app_messages(self) -> list[dict[str, JSON]]:
        """The in-app messages of the customer."""
        found: list[dict[str, JSON]] = self._wait("fetchInAppMessages")
        return found

    def fetch_app_inbox(self) -> list[dict[str, JSON]]:
        """The messages in the customer's App Inbox, the newest first."""
        found: list[dict[str, JSON]] = self._wait("fetchAppInbox")
        return found

    def mark_app_inbox_as_read(self, message_id: str) -> None:
        self._wait("markAppInboxAsRead", messageId=message_id)

    def send_self_check(self, push_token: str) -> None:
        """Requests a push notification to this device."""
        self._wait("sendSelfCheck", pushToken=push_token)

    def wipe(self) -> None:
        """Removes all data of this device; nothing more is recorded."""
        self._wait("wipe")

    def _heard(self, event: Mapping[str, JSON]) -> None:
        if event["event"] == "delivery_failure" and self._on_delivery_failure:
            self._on_delivery_failure(CountersignError._of(event["error"]))
