// Braze's documentation, "SDK Authentication", tab JavaScript: "Set the current user's JWT token".
import * as braze from "@braze/web-sdk";
braze.changeUser("NEW-USER-ID", "JWT-TOKEN-FROM-SERVER");
