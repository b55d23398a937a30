// Braze's documentation, "SDK Authentication", tab JavaScript: "Set the current user's JWT token", mid-session.
import * as braze from"@braze/web-sdk";
braze.setSdkAuthenticationSignature("NEW-JWT-TOKEN-FROM-SERVER");
