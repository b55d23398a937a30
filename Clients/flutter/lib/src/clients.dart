import 'dart:async';

import 'handle.dart';

/// Delivers events under their user's signed token. [identify] and [track] complete when the event is on disk.
final class CountersignClient extends Handle {
  /// [tokenProvider] is called with `userId`, `reason` (`missing`, `expired`, `rejected`) and `code`. The `token` in a
  /// failure is a credential: never log it. [settings] are further members of the configuration, as in `countersign.h`.
  CountersignClient(String endpoint, String writeKey,
      {FutureOr<String?> Function(Json request)? tokenProvider,
      void Function(Json failure)? onAuthenticationFailure,
      String? dataDirectory,
      Json settings = const {}})
      : _onFailure = onAuthenticationFailure,
        super('signed_user',
            {...settings, 'endpoint': endpoint, 'writeKey': writeKey, if (dataDirectory != null) 'dataDirectory': dataDirectory},
            provider: tokenProvider);

  final void Function(Json failure)? _onFailure;

  /// Sets the current user. Returns the id of the recorded event, or null if no event was recorded.
  Future<String?> identify(String userId, {String? token, Json? traits}) async =>
      await call('identify', {'userId': userId, 'token': token, 'traits': traits}) as String?;

  Future<void> changeUser(String userId, {String? token}) => call('changeUser', {'userId': userId, 'token': token});

  Future<void> setToken(String token) => call('setToken', {'token': token});

  Future<String?> get userId async => await call('userId') as String?;

  /// Records an event and returns its id. [kind]: `track`, `page`, `screen`, `group` or `alias`.
  Future<String> track(String event, {String kind = 'track', Json? properties}) async =>
      await call('track', {'event': event, 'kind': kind, 'properties': properties}) as String;

  Future<Json> logOut() async => await call('logOut') as Json;

  Future<Json> flush() async => await call('flush') as Json;

  Future<Json> snapshot() async => await call('snapshot') as Json;

  Future<void> startSession() => call('startSession');

  Future<void> enterBackground() => call('enterBackground');

  Future<void> enterForeground() => call('enterForeground');

  Future<void> wipe() => call('wipe');

  @override
  void heard(Json event) => _onFailure?.call(event);
}

/// Delivers locations under an access token, which the library refreshes.
final class LocationClient extends Handle {
  /// [http], [authorization], [persistence] and [context] are as in `countersign.h`. The `response` of an event may
  /// hold tokens: never log it.
  LocationClient(
      {Json? http,
      Json? authorization,
      Json? persistence,
      bool keepsTokens = false,
      void Function(Json event)? onEvent,
      String? dataDirectory,
      Json? context})
      : _onEvent = onEvent,
        super('access_token', {
          'http': http,
          'authorization': authorization,
          'persistence': persistence,
          'keepsTokens': keepsTokens,
          'dataDirectory': dataDirectory,
          'context': context
        });

  final void Function(Json event)? _onEvent;

  /// Returns the record's uuid once it is on disk.
  Future<String> insert(Json record) async => await call('insert', record) as String;

  Future<void> configure({Json? http, Json? authorization, Json? persistence}) =>
      call('configure', {'http': http, 'authorization': authorization, 'persistence': persistence});

  /// Returns the records that the server accepted.
  Future<List<Object?>> sync() async => await call('sync') as List<Object?>;

  Future<int> get count async => await call('count') as int;

  Future<Json> authorizationState() async => await call('authorizationState') as Json;

  Future<void> forgetTokens() => call('forgetTokens');

  Future<void> removeAll() => call('removeAll');

  @override
  void heard(Json event) => _onEvent?.call(event);
}

/// Records events in a project of Bloomreach Engagement, and fetches content. [trackEvent] completes when the event
/// is in memory.
final class BloomreachClient extends Handle {
  /// [configuration] has the keys of the vendor's Flutter SDK and the additional keys in `countersign.h`.
  BloomreachClient(Json configuration,
      {FutureOr<String?> Function()? authorizationProvider, void Function(CountersignException error)? onDeliveryFailure})
      : _onDeliveryFailure = onDeliveryFailure,
        super('bloomreach', configuration, provider: authorizationProvider == null ? null : (_) => authorizationProvider());

  final void Function(CountersignException error)? _onDeliveryFailure;

  Future<void> identifyCustomer(Map<String, String> customerIds, {Json? properties}) =>
      call('identifyCustomer', {'customerIds': customerIds, 'properties': properties});

  Future<void> trackEvent(String eventType, {Json? properties}) =>
      call('trackEvent', {'eventType': eventType, 'properties': properties});

  Future<void> trackPushToken(String? token) => call('trackPushToken', {'token': token});

  /// Starts over with an anonymous customer. [project] may change `projectToken`, `authorizationToken`, `baseUrl` and
  /// `projectMapping`.
  Future<void> anonymize([Json project = const {}]) => call('anonymize', project);

  Future<Json> customerIds() async => await call('customerIds') as Json;

  Future<List<Object?>> fetchAppInbox() async => await call('fetchAppInbox') as List<Object?>;

  Future<void> markAppInboxAsRead(String messageId) => call('markAppInboxAsRead', {'messageId': messageId});

  Future<List<Object?>> fetchConsents() async => await call('fetchConsents') as List<Object?>;

  Future<Json> flush() async => await call('flush') as Json;

  Future<Json> snapshot() async => await call('snapshot') as Json;

  Future<void> wipe() => call('wipe');

  @override
  void heard(Json event) => _onDeliveryFailure?.call(CountersignException.of(event['error'] as Json));
}
