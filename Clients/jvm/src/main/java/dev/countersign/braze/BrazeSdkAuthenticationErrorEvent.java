package dev.countersign.braze;

import dev.countersign.CountersignClient;

/** Replaces com.braze.events.BrazeSdkAuthenticationErrorEvent. */
public final class BrazeSdkAuthenticationErrorEvent {
    private final CountersignClient.AuthenticationFailure failure;

    BrazeSdkAuthenticationErrorEvent(CountersignClient.AuthenticationFailure failure) {
        this.failure = failure;
    }

    /** A code of docs/reference/error-codes.md, such as 22. */
    public int getErrorCode() {
        return failure.getCode();
    }

    /** The name of the code, such as {@code EXPIRED}, or a word such as {@code token_malformed}. */
    public String getErrorReason() {
        return failure.getReason();
    }

    /** The user whose token failed; null without a user. */
    public String getUserId() {
        return failure.getUserId();
    }

    /** The failed token; null if missing or malformed. A credential: never log it. */
    public String getSignature() {
        return failure.getToken();
    }

    /**
     * Whether the server accepted the data anyway, because the app does not require signatures. Braze's SDK
     * for Android has no such method. The property {@code optional} of its SDK for Swift has the same meaning.
     */
    public boolean isOptional() {
        return failure.isOptional();
    }

    /** When the request began, in seconds since 1970. */
    public long getRequestInitiationTime() {
        return (long) failure.getRequestTime();
    }
}
