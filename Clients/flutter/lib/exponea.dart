/// Configures a client with the names of Bloomreach's Flutter SDK. Never run: the README says what was checked.
library;

import 'dart:async';

import 'countersign.dart';

/// The vendor's configuration, as far as it is about more than notifications on one platform.
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

  /// By kind of event: `projectToken`, `authorizationToken`, `baseUrl`.
  final Map<String, List<Map<String, String>>>? projectMapping;
  final Map<String, Object?>? defaultProperties;

  /// Seconds.
  final double? sessionTimeout;
  final bool? automaticSessionTracking;
  final bool? allowDefaultCustomerProperties;

  /// The App Inbox is asked for under a customer token.
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

/// The one client of an app, however many of these are made.
class ExponeaPlugin {
  static BloomreachClient? _client;

  /// Returns the customer's token, or null for none. It takes the place of the vendor's native `AuthorizationProvider`, and is to
  /// be set before [configure].
  static FutureOr<String?> Function()? authorizationProvider;

  /// False if there was a configuration before, which then stays. Throws [CountersignException] for one that cannot work.
  Future<bool> configure(ExponeaConfiguration configuration) async {
    if (_client != null) return false;
    _client = BloomreachClient(configuration.toMap(), authorizationProvider: authorizationProvider);
    return true;
  }

  Future<bool> isConfigured() async => _client != null;

  /// What records and asks.
  BloomreachClient get client => _client ?? (throw StateError('configure was not called'));
}
