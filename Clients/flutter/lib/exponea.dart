/// Configures a client with the names of Bloomreach's Flutter SDK. Never compiled or run: see the README.
library;

import 'dart:async';

import 'countersign.dart';

/// The vendor's configuration, without its settings for notifications on Android or iOS.
class ExponeaConfiguration {
  const ExponeaConfiguration({
    required this.projectToken,
    required this.authorizationToken,
    this.baseUrl,
    this.projectMapping,
    this.defaultProperties,
    this.sessionTimeout,
    this.automaticSessionTracking,
    this.allowDefaultCustomerProperties,
    this.advancedAuthEnabled,
    this.manualSessionAutoClose,
    this.applicationId,
  });

  final String projectToken;

  /// The project's API key.
  final String authorizationToken;
  final String? baseUrl;

  /// The projects of each kind of event, with `projectToken`, `authorizationToken` and `baseUrl`.
  final Map<String, List<Map<String, String>>>? projectMapping;
  final Map<String, Object?>? defaultProperties;

  /// Seconds.
  final double? sessionTimeout;
  final bool? automaticSessionTracking;
  final bool? allowDefaultCustomerProperties;

  /// Whether the App Inbox is fetched under a customer token.
  final bool? advancedAuthEnabled;
  final bool? manualSessionAutoClose;
  final String? applicationId;

  Map<String, Object?> toMap() => {
        'projectToken': projectToken,
        'authorizationToken': authorizationToken,
        'baseUrl': baseUrl,
        'projectMapping': projectMapping,
        'defaultProperties': defaultProperties,
        'sessionTimeout': sessionTimeout,
        'automaticSessionTracking': automaticSessionTracking,
        'allowDefaultCustomerProperties': allowDefaultCustomerProperties,
        'advancedAuthEnabled': advancedAuthEnabled,
        'manualSessionAutoClose': manualSessionAutoClose,
        'applicationId': applicationId,
      };
}

/// All instances share one client.
class ExponeaPlugin {
  static BloomreachClient? _client;

  /// Returns the customer's token, or null. Replaces the vendor's native `AuthorizationProvider`. Set it before
  /// [configure].
  static FutureOr<String?> Function()? authorizationProvider;

  /// Returns false, and changes nothing, if already configured. Throws [CountersignException] for an invalid
  /// configuration.
  Future<bool> configure(ExponeaConfiguration configuration) async {
    if (_client != null) return false;
    _client = BloomreachClient(configuration.toMap(), authorizationProvider: authorizationProvider);
    return true;
  }

  Future<bool> isConfigured() async => _client != null;

  /// The client, for recording events and fetching content. Throws [StateError] before [configure].
  BloomreachClient get client => _client ?? (throw StateError('call configure before other methods'));
}
