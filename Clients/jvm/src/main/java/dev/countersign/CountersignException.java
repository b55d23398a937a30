package dev.countersign;

import java.util.Map;

/** An error of a client. It never holds a token, a key or an event. */
public final class CountersignException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String code;
    private final String detail;
    private final Integer status;
    private final Integer authCode;
    private final boolean retryable;

    CountersignException(String code, String detail) {
        this(Map.of("code", code, "detail", detail));
    }

    CountersignException(Map<String, Object> members) {
        super(members.get("code") + ": " + members.get("detail"));
        code = (String) members.get("code");
        detail = (String) members.get("detail");
        status = members.get("status") == null ? null : ((Number) members.get("status")).intValue();
        authCode = members.get("authCode") == null ? null : ((Number) members.get("authCode")).intValue();
        retryable = Boolean.TRUE.equals(members.get("retryable"));
    }

    /** A stable word such as {@code invalid_configuration}. */
    public String getCode() {
        return code;
    }

    /** A description; safe to log. */
    public String getDetail() {
        return detail;
    }

    /** The status of the server's response; null without a response. */
    public Integer getStatus() {
        return status;
    }

    /** The server's code for the token, such as 22; null without one. */
    public Integer getAuthCode() {
        return authCode;
    }

    /** Whether the same call may succeed later. */
    public boolean isRetryable() {
        return retryable;
    }
}
