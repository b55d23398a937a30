package dev.countersign.exponea;

/** Replaces com.exponea.sdk.services.AuthorizationProvider. */
public interface AuthorizationProvider {
    /** Returns the customer token for the next request; null without a token. It may block. */
    String getAuthorizationToken();
}
