"""Values of any type as JSON, by the table in docs/reference/event-format.md."""
from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import numbers
import os
import uuid
from collections import abc
from typing import Any, Callable, Mapping

LEFT_OUT = object()
# Bounds the recursion. The library keeps 60 levels, and replaces deeper values by null.
_MAXIMUM_LEVELS = 80
# An event with more values is too large for a gateway.
_MAXIMUM_VALUES = 100_000


def to_json(members: Mapping[str, Any], report: Callable[[str], None]) -> bytes:
    """Returns the JSON text of the members that are not None. ``report`` gets the name of each unsupported type.

    No value makes it raise. An unpaired surrogate becomes U+FFFD.
    """
    converted = _Conversion(report).json({name: value for name, value in members.items() if value is not None})
    text = json.dumps(converted, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def is_argument(value: Any) -> bool:
    """Whether an argument of a method keeps its type in JSON.

    Other types become null, which the library treats as missing, or text. A user id of bytes would name another user.
    """
    if value is None or isinstance(value, (str, bool, abc.Mapping)):
        return True
    if isinstance(value, enum.Enum):
        return is_argument(value.value)
    converted = _Conversion(lambda _: None).json(value)
    return converted is not None and converted is not LEFT_OUT and not isinstance(converted, str)


class _Conversion:
    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._room = _MAXIMUM_VALUES
        # The ids of the objects that contain the current value, to detect cycles.
        self._path: list[int] = []

    def json(self, value: Any) -> Any:
        """Returns the value for `json.dumps`; LEFT_OUT if its type is not supported."""
        self._room -= 1
        if self._room < 0 or len(self._path) >= _MAXIMUM_LEVELS or id(value) in self._path:
            return None
        self._path.append(id(value))
        try:
            return self._convert(value)
        # Raised by the app's code, such as an iterator. The event is recorded anyway.
        except Exception:
            return None
        finally:
            self._path.pop()

    def _convert(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return self._convert(value.value)
        # Do not call the `__str__` of an app's subclass of str.
        if isinstance(value, str):
            return value
        if isinstance(value, collections.UserString):
            return value.data
        if isinstance(value, numbers.Integral):
            return _integer(int(value))
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if isinstance(value, decimal.Decimal):
            return _decimal(value)
        if isinstance(value, numbers.Real):
            return _real(value)
        if isinstance(value, datetime.datetime):
            return _datetime(value)
        if isinstance(value, (datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, uuid.UUID):
            return str(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return base64.b64encode(bytes(value)).decode()
        if isinstance(value, os.PathLike):
            return self._convert(os.fspath(value))
        if isinstance(value, abc.Mapping):
            return self._object(value.items())
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._object((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value))
        if type(value).__module__ == "numpy" and not getattr(value, "shape", None):
            return self._convert(value.item())
        if isinstance(value, abc.Collection):
            return [None if element is LEFT_OUT else element for element in map(self.json, self._while_room(value))]
        self._report(type(value).__name__)
        return LEFT_OUT

    def _while_room(self, values: Any) -> Any:
        for value in values:
            if self._room <= 0:
                return
            yield value

    def _object(self, items: Any) -> dict[str, Any]:
        members = {}
        for key, value in self._while_room(items):
            member = self.json(value)
            if member is not LEFT_OUT:
                members[self._name(key)] = member
        return members

    def _name(self, key: Any) -> str:
        if isinstance(key, abc.Collection) and not isinstance(key, (str, bytes)):
            return str(key)
        name = self.json(key)
        return name if isinstance(name, str) else str(key) if name is LEFT_OUT else json.dumps(name)


def _integer(value: int) -> Any:
    if -(1 << 63) <= value < 1 << 63:
        return value
    # `str` raises for thousands of digits, and the value then becomes null.
    return str(value)


def _decimal(value: decimal.Decimal) -> Any:
    """Returns a number if a 64-bit number has the same digits, otherwise text with all digits."""
    if not value.is_finite():
        return None
    text = format(value, "f") if abs(value.adjusted()) < 400 else str(value)
    if value == value.to_integral_value():
        return _integer(int(value)) if value.adjusted() < 400 else text
    return float(value) if decimal.Decimal(repr(float(value))) == value else text


def _real(value: Any) -> Any:
    # Convert through text, because a numpy.float32 of 0.1 becomes 0.10000000149 as a float.
    try:
        number = float(str(value))
    except ValueError:
        number = float(value)
    return number if math.isfinite(number) else None


def _datetime(value: datetime.datetime) -> str:
    # A datetime without a time zone is local time, as for the methods of datetime.
    utc = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"
