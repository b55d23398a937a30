/// Delivers events under their user's signed token, each exactly once. Never run: the README says what was checked.
library;

export 'src/clients.dart';
export 'src/handle.dart' show CountersignException, Json, libraryVersion;
