// Braze's documentation, "SDK Authentication", tab JavaScript: "Register a callback function for invalid tokens". There
// `await` is in a function that is not `async`, and `appboy` is not declared. Both are corrected here.
import * as braze from"@braze/web-sdk";
braze.subscribeToSdkAuthenticationFailures(async (error) => {
  // TODO: Optionally log to your error-reporting service
  // TODO: Check if the `user_id` within the `error` matches the currently logged-in user
  const updated_jwt = await getNewTokenSomehow(error);
  braze.setSdkAuthenticationSignature(updated_jwt);
});
