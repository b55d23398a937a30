/// The part of Braze's Flutter SDK that SDK Authentication needs. Never compiled or run: see the README.
library;

import 'dart:async';

import 'countersign.dart';

/// A rejected or missing token.
class BrazeSdkAuthenticationError {
  BrazeSdkAuthenticationError(Json failure)
      : code = failure['code'] as int,
        reason = failure['reason'] as String,
        userId = failure['userId'] as String? ?? '',
        signature = failure['token'] as String? ?? '',
        optional = failure['optional'] == true;

  /// A code of docs/reference/error-codes.md. 10 to 28 are the same as in Braze; 30 and above are Countersign's own.
  final int code;

  /// The name of `code`, such as `EXPIRED`, or a word such as `token_malformed`.
  final String reason;

  /// The signature's user; empty without a user. Compare it with the current user before getting a new signature.
  final String userId;

  /// The rejected signature; empty if missing. A credential: never log it.
  final String signature;

  /// True if the server accepted the data anyway, because the app does not require signatures.
  final bool optional;
}

/// The methods of Braze's plugin. All instances share one client.
class BrazePlugin {
  static CountersignClient? _client;
  static FutureOr<void> Function(BrazeSdkAuthenticationError error)? _handler;

  /// [apiKey] is the app's write key, [endpoint] the gateway's URL. Braze's plugin has both in native configuration.
  void initialize(String apiKey, String endpoint) =>
      _client ??= CountersignClient(endpoint, apiKey,
          onAuthenticationFailure: (failure) => _handler?.call(BrazeSdkAuthenticationError(failure)));

  CountersignClient get _initialized => _client ?? (throw StateError('call initialize before other methods'));

  void changeUser(String userId, {String? sdkAuthSignature}) =>
      unawaited(_initialized.changeUser(userId, token: sdkAuthSignature));

  void setSdkAuthenticationSignature(String signature) => unawaited(_initialized.setToken(signature));

  /// Sets the function called for each failure. An unresolved failure is reported again in each session and, if it
  /// recurs, at most every five minutes.
  void setBrazeSdkAuthenticationErrorCallback(FutureOr<void> Function(BrazeSdkAuthenticationError error) callback) =>
      _handler = callback;

  void logCustomEvent(String key, {Json? properties}) => unawaited(_initialized.track(key, properties: properties));

  void requestImmediateDataFlush() => unawaited(_initialized.flush());
}
