import 'dart:convert';
import 'dart:developer' as developer;
import 'dart:typed_data';

/// Bounds the recursion. The library keeps 60 levels, and replaces deeper values by null.
const _maximumLevels = 80;

/// An event with more values is too large for a gateway.
const _maximumValues = 100000;

const _leftOut = Object();

/// Returns the JSON of any value, by the table in docs/reference/event-format.md. Catches errors of the app's classes.
String toJson(Object? value) {
  final json = _Conversion().json(value);
  return jsonEncode(identical(json, _leftOut) ? null : json);
}

final class _Conversion {
  var _room = _maximumValues;

  /// The objects that contain the current value, to detect cycles.
  final _path = <Object?>[];

  Object? json(Object? value) {
    _room -= 1;
    if (_room < 0 || _path.length >= _maximumLevels) return null;
    if (value is! num && value is! String && _path.any((outer) => identical(outer, value))) return null;
    _path.add(value);
    try {
      return _convert(value);
    } catch (_) {
      // Thrown by the app's own code, such as an iterator. The event is recorded anyway.
      return null;
    } finally {
      _path.removeLast();
    }
  }

  Object? _convert(Object? value) {
    switch (value) {
      case null || bool() || String() || int():
        return value;
      case double():
        return value.isFinite ? value : null;
      case BigInt():
        return value.isValidInt ? value.toInt() : value.toString();
      case DateTime():
        return _instant(value);
      case Uri():
        return value.toString();
      case Enum():
        return value.name;
      case Uint8List():
        return base64Encode(value);
      case Uint8ClampedList():
        return base64Encode(value);
      case ByteData():
        return base64Encode(value.buffer.asUint8List(value.offsetInBytes, value.lengthInBytes));
      case ByteBuffer():
        return base64Encode(value.asUint8List());
      case Map():
        return _object(value);
      case Iterable():
        final elements = <Object?>[];
        for (final element in value) {
          // An iterable may have no end.
          if (_room <= 0) break;
          elements.add(_element(element));
        }
        return elements;
    }
    Object? made;
    try {
      made = (value as dynamic).toJson();
    } on NoSuchMethodError {
      developer.log('a value is left out: its type is not supported type=${value.runtimeType}', name: 'countersign');
      return _leftOut;
    }
    return json(made);
  }

  Object? _element(Object? element) {
    final found = json(element);
    return identical(found, _leftOut) ? null : found;
  }

  Map<String, Object?> _object(Map<Object?, Object?> map) {
    final members = <String, Object?>{};
    for (final entry in map.entries) {
      if (_room <= 0) break;
      final found = json(entry.value);
      if (!identical(found, _leftOut)) members[_name(entry.key)] = found;
    }
    return members;
  }

  String _name(Object? key) => switch (key) {
        String() => key,
        Enum() => key.name,
        DateTime() => _instant(key) ?? 'null',
        _ => '$key',
      };

  static String? _instant(DateTime time) {
    final utc = DateTime.fromMillisecondsSinceEpoch(time.millisecondsSinceEpoch, isUtc: true);
    return utc.year < 0 || utc.year > 9999 ? null : utc.toIso8601String();
  }
}
