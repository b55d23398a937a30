package dev.countersign;

/**
 * Stores the last token of each user between two runs of the app, in place of the library's file.
 *
 * <p>One call at a time, on a thread of the client or of the caller. An exception is logged, and the token
 * counts as missing. Never log a token.
 */
public interface TokenStore {
    /** The stored token, or null. */
    String token(String userId) throws Exception;

    /** Stores a token in place of an earlier one. */
    void store(String token, String userId) throws Exception;

    /** Removes a user's token. */
    void remove(String userId) throws Exception;

    /** Removes all tokens. */
    void removeAll() throws Exception;
}
