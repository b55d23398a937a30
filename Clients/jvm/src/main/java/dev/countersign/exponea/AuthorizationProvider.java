package dev.countersign.exponea;

/** As com.exponea.sdk.services.AuthorizationProvider. */
public interface AuthorizationProvider {
    /** The customer token for a request that is about to be sent; null if there is none. It may block. */
    String getAuthorizationToken();
}
