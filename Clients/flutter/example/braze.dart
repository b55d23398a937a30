// Braze's documentation, "SDK Authentication", tab Dart. As printed the callback is no Dart: `let` is a word of Swift, and two
// semicolons are missing. Both are mended here.
import 'package:countersign/braze.dart';

final braze = BrazePlugin();

void changeUser() {
  braze.changeUser("userId", sdkAuthSignature: "signature");
}

void setSignature() {
  braze.setSdkAuthenticationSignature("signature");
}

void subscribe(String Function(BrazeSdkAuthenticationError error) getNewSignatureSomehow) {
  braze.setBrazeSdkAuthenticationErrorCallback((BrazeSdkAuthenticationError error) async {
    // TODO: Optionally log to your error-reporting service
    // TODO: Check if the `user_id` within the `error` matches the currently logged-in user
    print("Invalid SDK Authentication signature.");
    final newSignature = getNewSignatureSomehow(error);
    braze.setSdkAuthenticationSignature(newSignature);
  });
}
