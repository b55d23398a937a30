/// Delivers events under their user's signed token, each exactly once. Never run; the README lists the checks.
library;

export 'src/clients.dart';
export 'src/handle.dart' show CountersignException, Json, libraryVersion;
