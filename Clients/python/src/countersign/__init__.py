"""Delivers events under signed tokens, without losing any: libcountersign for Python.

Three clients: :class:`Client` (events under their user's signed token), :class:`LocationClient` (locations under an access
token, which it refreshes) and :class:`BloomreachClient`.
"""
from ._bloomreach import BloomreachClient
from ._client import AuthenticationFailure, Client, TokenRequest
from ._handle import CountersignError, FlushBatch, FlushResult
from ._library import version
from ._locations import AuthorizationEvent, LocationClient, UploadEvent

__all__ = [
    "AuthenticationFailure", "AuthorizationEvent", "BloomreachClient", "Client", "CountersignError", "FlushBatch",
    "FlushResult", "LocationClient", "TokenRequest", "UploadEvent", "version",
]
