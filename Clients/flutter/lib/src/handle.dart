import 'dart:async';
import 'dart:convert';
import 'dart:developer' as developer;
import 'dart:ffi';

import 'package:ffi/ffi.dart';

import 'bindings.dart' as library;
import 'values.dart';

typedef Json = Map<String, Object?>;

/// The version of libcountersign.
String libraryVersion() => library.version().toDartString();

/// An error of a client. It never holds a token, a key or an event.
final class CountersignException implements Exception {
  CountersignException(this.code, this.detail, {this.status, this.authCode, this.isRetryable = false, this.retryAfter});

  CountersignException.of(Json json)
      : this(json['code'] as String, json['detail'] as String,
            status: json['status'] as int?,
            authCode: json['authCode'] as int?,
            isRetryable: json['retryable'] as bool? ?? false,
            retryAfter: json['retryAfter'] as num?);

  /// A stable word such as `invalid_configuration`.
  final String code;
  final String detail;
  final int? status;
  final int? authCode;

  /// Whether the same call may succeed later.
  final bool isRetryable;

  /// Seconds.
  final num? retryAfter;

  @override
  String toString() => '$code: $detail';
}

/// A client of the library. Use and close it on the isolate that created it.
///
/// The library calls a listener on its own thread, and the Dart function runs later on the isolate. So the client
/// is opened with `keepsTexts`: a callback's text stays valid until [_take] frees it.
abstract base class Handle {
  Handle(String mode, Json configuration, {FutureOr<String?> Function(Json request)? provider}) : _ask = provider {
    final onProvider = _onProvider?.nativeFunction ?? nullptr;
    _client = using((arena) {
      final (text, length) = _native(toJson({
        ...configuration,
        'context': {'library': 'countersign-dart', ...?configuration['context'] as Json?},
        'keepsTexts': true,
      }), arena);
      final error = arena<Pointer<Utf8>>()..value = nullptr;
      final errorLength = arena<Size>();
      final event = _onEvent.nativeFunction;
      final client = switch (mode) {
        'signed_user' => library.openSignedUser(text, length, onProvider, event, nullptr, error, errorLength),
        'access_token' => library.openAccessToken(text, length, event, nullptr, error, errorLength),
        _ => library.openBloomreach(text, length, onProvider, event, nullptr, error, errorLength),
      };
      if (client != nullptr) return client;
      _release();
      throw CountersignException.of(_take(error.value, errorLength.value));
    });
  }

  final FutureOr<String?> Function(Json request)? _ask;
  late final Pointer<library.Client> _client;
  late final _onResult = NativeCallable<library.ResultCallback>.listener(_answered);
  late final _onEvent = NativeCallable<library.EventCallback>.listener(_happened);
  late final _onProvider = _ask == null ? null : NativeCallable<library.ProviderCallback>.listener(_asked);
  final _calls = <int, Completer<Object?>>{};
  var _last = 0;
  Future<void>? _closing;

  /// Passes an event of the library, other than a log line, to the app.
  void heard(Json event) {}

  /// Calls a method of `countersign.h`. The library treats a null argument as missing. Values may be of any type
  /// (docs/reference/event-format.md).
  Future<Object?> call(String method, [Json arguments = const {}]) {
    if (_closing != null) return Future.error(CountersignException('closed', 'the client is closed'));
    return _begin((context) => using((arena) {
          final (name, nameLength) = _native(method, arena);
          final (text, length) = _native(toJson(arguments), arena);
          return library.call(_client, name, nameLength, text, length, _onResult.nativeFunction, context);
        }));
  }

  /// Stores pending events and ends all work. The next client with this queue sends the remaining events.
  Future<void> close() => _closing ??=
      _begin((context) => library.close(_client, _onResult.nativeFunction, context)).whenComplete(_release);

  Future<Object?> _begin(int Function(Pointer<Void> context) call) {
    final number = ++_last;
    final completer = _calls[number] = Completer<Object?>();
    final status = call(Pointer.fromAddress(number));
    if (status != library.ok) {
      _calls.remove(number);
      completer.completeError(switch (status) {
        library.closed => CountersignException('closed', 'the client is closed'),
        library.forked => CountersignException('forked', 'the process was forked after a client was opened'),
        _ => CountersignException('invalid_argument', 'a text is missing or is not UTF-8'),
      });
    }
    return completer.future;
  }

  /// Closes the listeners. Call it only after the library's last callback.
  void _release() {
    _onResult.close();
    _onEvent.close();
    _onProvider?.close();
  }

  void _answered(Pointer<Void> context, Pointer<Utf8> json, int length) {
    final answer = _take(json, length);
    final call = _calls.remove(context.address);
    if (answer['error'] case final Json error) {
      call?.completeError(CountersignException.of(error));
    } else {
      call?.complete(answer['value']);
    }
  }

  void _happened(Pointer<Void> context, Pointer<Utf8> json, int length) {
    final event = _take(json, length);
    if (event['event'] == 'log') {
      developer.log('${event['message']} ${event['values']}', name: 'countersign');
    } else {
      heard(event);
    }
  }

  // Returns void instead of a Future, because a listener must.
  void _asked(Pointer<Void> context, int number, Pointer<Utf8> request, int length) async {
    final question = _take(request, length);
    String? token;
    try {
      token = await _ask!(question);
    } catch (error) {
      developer.log('the token provider failed', name: 'countersign', error: error);
    }
    using((arena) {
      final (text, textLength) = token == null ? (nullptr, 0) : _native(token, arena);
      library.answer(_client, number, text, textLength);
    });
  }

  static Json _take(Pointer<Utf8> text, int length) {
    try {
      return jsonDecode(text.toDartString(length: length)) as Json;
    } finally {
      library.free(text);
    }
  }

  /// Copies a text into the arena as UTF-8. Returns the copy and its length in bytes.
  static (Pointer<Utf8>, int) _native(String text, Arena arena) {
    final bytes = utf8.encode(text);
    final pointer = arena<Uint8>(bytes.length + 1);
    pointer.asTypedList(bytes.length).setAll(0, bytes);
    return (pointer.cast<Utf8>(), bytes.length);
  }
}
