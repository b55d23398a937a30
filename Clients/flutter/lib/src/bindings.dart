/// The functions of `countersign.h`. The header documents them.
///
/// `tools/flutter.py` compares this file with the header.
library;

import 'dart:ffi';
import 'dart:io';

import 'package:ffi/ffi.dart';

final class Client extends Opaque {}

/// `countersign_result`.
typedef ResultCallback = Void Function(Pointer<Void> context, Pointer<Utf8> json, Size length);

/// `countersign_event`.
typedef EventCallback = Void Function(Pointer<Void> context, Pointer<Utf8> json, Size length);

/// `countersign_provider`.
typedef ProviderCallback = Void Function(Pointer<Void> context, Uint64 number, Pointer<Utf8> request, Size length);

typedef NativeOpen = Pointer<Client> Function(
    Pointer<Utf8> configuration, Size configurationLength, Pointer<NativeFunction<ProviderCallback>> provider,
    Pointer<NativeFunction<EventCallback>> event, Pointer<Void> context, Pointer<Pointer<Utf8>> error, Pointer<Size> errorLength);
typedef DartOpen = Pointer<Client> Function(
    Pointer<Utf8> configuration, int configurationLength, Pointer<NativeFunction<ProviderCallback>> provider,
    Pointer<NativeFunction<EventCallback>> event, Pointer<Void> context, Pointer<Pointer<Utf8>> error, Pointer<Size> errorLength);

typedef NativeOpenAccessToken = Pointer<Client> Function(
    Pointer<Utf8> configuration, Size configurationLength, Pointer<NativeFunction<EventCallback>> event, Pointer<Void> context,
    Pointer<Pointer<Utf8>> error, Pointer<Size> errorLength);
typedef DartOpenAccessToken = Pointer<Client> Function(
    Pointer<Utf8> configuration, int configurationLength, Pointer<NativeFunction<EventCallback>> event, Pointer<Void> context,
    Pointer<Pointer<Utf8>> error, Pointer<Size> errorLength);

typedef NativeAnswer = Int32 Function(Pointer<Client> client, Uint64 number, Pointer<Utf8> token, Size tokenLength);
typedef DartAnswer = int Function(Pointer<Client> client, int number, Pointer<Utf8> token, int tokenLength);

typedef NativeCall = Int32 Function(
    Pointer<Client> client, Pointer<Utf8> method, Size methodLength, Pointer<Utf8> arguments, Size argumentsLength,
    Pointer<NativeFunction<ResultCallback>> result, Pointer<Void> context);
typedef DartCall = int Function(
    Pointer<Client> client, Pointer<Utf8> method, int methodLength, Pointer<Utf8> arguments, int argumentsLength,
    Pointer<NativeFunction<ResultCallback>> result, Pointer<Void> context);

typedef NativeClose = Int32 Function(
    Pointer<Client> client, Pointer<NativeFunction<ResultCallback>> done, Pointer<Void> context);
typedef DartClose = int Function(
    Pointer<Client> client, Pointer<NativeFunction<ResultCallback>> done, Pointer<Void> context);

typedef NativeFree = Void Function(Pointer<Utf8> text);
typedef DartFree = void Function(Pointer<Utf8> text);

typedef NativeVersion = Pointer<Utf8> Function();
typedef DartVersion = Pointer<Utf8> Function();

// Values of `countersign_status`, from COUNTERSIGN_OK to COUNTERSIGN_INVALID.
const ok = 0, closed = 1, forked = 2, invalid = 3;

/// On iOS the library is linked into the app's program.
final DynamicLibrary _library =
    Platform.isIOS ? DynamicLibrary.process() : DynamicLibrary.open(Platform.isMacOS ? 'libcountersign.dylib' : 'libcountersign.so');

final openSignedUser = _library.lookupFunction<NativeOpen, DartOpen>('countersign_open_signed_user');
final openAccessToken = _library.lookupFunction<NativeOpenAccessToken, DartOpenAccessToken>('countersign_open_access_token');
final openBloomreach = _library.lookupFunction<NativeOpen, DartOpen>('countersign_open_bloomreach');
final answer = _library.lookupFunction<NativeAnswer, DartAnswer>('countersign_answer');
final call = _library.lookupFunction<NativeCall, DartCall>('countersign_call');
final close = _library.lookupFunction<NativeClose, DartClose>('countersign_close');
final free = _library.lookupFunction<NativeFree, DartFree>('countersign_free');
final version = _library.lookupFunction<NativeVersion, DartVersion>('countersign_version');
