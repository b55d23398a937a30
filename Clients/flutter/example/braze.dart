// Braze's documentation, "SDK Authentication", tab Dart. In the documentation the callback is not valid
// Dart: it has Swift's `let` and lacks two semicolons. Both are corrected here.
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
