// Braze's documentation, "SDK Authentication", tab JavaScript: "Enable this feature in the Braze SDK".
import * as braze from"@braze/web-sdk";
braze.initialize("YOUR-API-KEY-HERE", {
  baseUrl: "YOUR-SDK-ENDPOINT-HERE",
  enableSdkAuthentication: true,
});
