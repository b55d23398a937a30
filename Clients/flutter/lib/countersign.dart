/// Delivers events under their user's signed token, each exactly once. Never compiled or run: see the README.
library;

export 'src/clients.dart';
export 'src/handle.dart' show CountersignException, Json, libraryVersion;
