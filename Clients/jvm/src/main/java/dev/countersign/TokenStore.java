package dev.countersign;

/**
 * Stores the last token of each user for the next run of the app, instead of the library's own file.
 *
 * <p>Called on a thread of the client or of the app, one call at a time. Exceptions are logged. If
 * {@link #token} throws, the token counts as missing. Never log a token.
 */
public interface TokenStore {
    /** The stored token, or null. */
    String token(String userId) throws Exception;

    /** Stores the user's token, and replaces an earlier one. */
    void store(String token, String userId) throws Exception;

    void remove(String userId) throws Exception;

    void removeAll() throws Exception;
}
