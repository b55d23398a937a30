// Bloomreach's documentation of the Flutter SDK, "Authorization", with the URL of a gateway.
import 'package:countersign/exponea.dart';

final _plugin = ExponeaPlugin();

Future<bool> withAPIKey() async {
  final config = ExponeaConfiguration(
    projectToken: "YOUR_PROJECT_TOKEN",
    authorizationToken: "YOUR_API_KEY",
    baseUrl: "https://events.example",
  );
  final configured = await _plugin.configure(config);
  return configured;
}

Future<bool> withCustomerTokens() async {
  final config = ExponeaConfiguration(
    projectToken: "YOUR_PROJECT_TOKEN",
    authorizationToken: "YOUR_API_KEY",
    baseUrl: "https://events.example",
    advancedAuthEnabled: true,
  );
  final configured = await _plugin.configure(config);
  return configured;
}
