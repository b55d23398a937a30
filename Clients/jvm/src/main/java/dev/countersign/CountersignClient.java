package dev.countersign;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * Records what users do, and delivers it to a gateway: each event exactly once, under its user's signed token.
 *
 * <pre>{@code
 * try (CountersignClient client = new CountersignClient.Builder("https://events.example", "wk_…")
 *         .tokenProvider(request -> tokenFor(request.getUserId())).build()) {
 *     client.identify("user-1");
 *     client.track("Order Completed", Map.of("total", 42.5)).join();
 *     client.flush();
 * }
 * }</pre>
 */
public final class CountersignClient extends Client {
    /**
     * Gets a token for a user. It is called on a thread of its own and may block; null says that there is none, and whatever it
     * throws, errors too, is logged and means the same.
     */
    @FunctionalInterface
    public interface TokenProvider {
        /** The token, or null. */
        String token(TokenRequest request) throws Exception;
    }

    /** Whose token is needed, and why. */
    public static final class TokenRequest {
        private final Map<String, Object> members;

        TokenRequest(Map<String, Object> members) {
            this.members = members;
        }

        /** Whose: not always the current user. */
        public String getUserId() {
            return (String) members.get("userId");
        }

        /** {@code missing}, {@code expired} or {@code rejected}. */
        public String getReason() {
            return (String) members.get("reason");
        }

        /** What the server said of a rejected one; null otherwise. */
        public Integer getCode() {
            return members.get("code") == null ? null : ((Number) members.get("code")).intValue();
        }
    }

    /** A token that a server did not accept, or that could not be obtained. */
    public static final class AuthenticationFailure {
        private final Map<String, Object> members;

        AuthenticationFailure(Map<String, Object> members) {
            this.members = members;
        }

        /** The server's number, such as 22; 0 if it is not the server's. */
        public int getCode() {
            return ((Number) members.get("code")).intValue();
        }

        /** The same as a word, such as {@code EXPIRED}. */
        public String getReason() {
            return (String) members.get("reason");
        }

        /** Whose token; null without a user. */
        public String getUserId() {
            return (String) members.get("userId");
        }

        /** The token; null if there was none. A credential: never log it. */
        public String getToken() {
            return (String) members.get("token");
        }

        /** Whether the server has taken the events all the same. */
        public boolean isOptional() {
            return Boolean.TRUE.equals(members.get("optional"));
        }

        /** When the request began, in seconds since 1970. */
        public double getRequestTime() {
            return ((Number) members.get("requestTime")).doubleValue();
        }
    }

    /** How a client works. */
    public static final class Builder {
        private final Map<String, Object> members = new LinkedHashMap<>();
        private TokenProvider tokenProvider;
        private Consumer<AuthenticationFailure> failures;

        /** The gateway's URL and the app's key. */
        public Builder(String endpoint, String writeKey) {
            members.put("endpoint", endpoint);
            members.put("writeKey", writeKey);
        }

        /** Asked when there is no token, when it expires and when the gateway refuses it. */
        public Builder tokenProvider(TokenProvider provider) {
            tokenProvider = provider;
            return this;
        }

        /**
         * Told of refused and missing tokens, on a thread of the client. The same failure is told at once, and again at most once in
         * five minutes and at the start of a session. See {@link AuthenticationFailure#isOptional}.
         */
        public Builder onAuthenticationFailure(Consumer<AuthenticationFailure> handler) {
            failures = handler;
            return this;
        }

        /** The folder for what waits. On Android a folder below {@code getFilesDir()}. */
        public Builder dataDirectory(String path) {
            return set("dataDirectory", path);
        }

        /** Any other member of the configuration, as countersign.h has it. */
        public Builder set(String name, Object value) {
            members.put(name, value);
            return this;
        }

        /** Opens the client. Throws {@link CountersignException} if it cannot work like that. */
        public CountersignClient build() {
            return new CountersignClient(members, tokenProvider, failures);
        }
    }

    private CountersignClient(
        Map<String, Object> members, TokenProvider provider, Consumer<AuthenticationFailure> failures) {
        super(0, members, provider == null ? null : request -> provider.token(new TokenRequest(request)), event -> {
            if (failures != null && event.get("event").equals("authentication_failure")) {
                failures.accept(new AuthenticationFailure(event));
            }
        });
    }

    /** Says who the user is, who has a token from the provider. */
    public CompletableFuture<String> identify(String userId) {
        return identify(userId, null, Map.of());
    }

    /** Says who the user is; the event's id, or null if there was nothing to record. */
    public CompletableFuture<String> identify(String userId, String token, Map<String, ?> traits) {
        return call("identify", arguments("userId", userId, "token", token, "traits", traits)).thenApply(id -> (String) id);
    }

    /** As identify, without an event. The token may be null. */
    public void changeUser(String userId, String token) {
        await("changeUser", arguments("userId", userId, "token", token));
    }

    /** Hands over a new token of the present user; what waits for one is sent at once. */
    public void setToken(String token) {
        await("setToken", arguments("token", token));
    }

    /** The present user; null if there is none. */
    public String getUserId() {
        return await("userId", Map.of());
    }

    /** Records an event; its id, when it is on disk. */
    public CompletableFuture<String> track(String event) {
        return track(event, Map.of());
    }

    /** Records an event; its id, when it is on disk. */
    public CompletableFuture<String> track(String event, Map<String, ?> properties) {
        return call("track", arguments("event", event, "properties", properties)).thenApply(id -> (String) id);
    }

    /** Sends everything that can be sent now: {@code delivered}, {@code queued}, {@code ending} and {@code batches}. */
    public Map<String, Object> flush() {
        return await("flush", Map.of());
    }

    /** Sends what is left under the user's token, and then forgets that token. */
    public Map<String, Object> logOut() {
        return await("logOut", Map.of());
    }

    /** Begins a session: what was paused after too many refused tokens is tried again. */
    public void startSession() {
        await("startSession", Map.of());
    }

    /** Ends the session. */
    public void endSession() {
        await("endSession", Map.of());
    }

    /** The app is in the background: what can be sent is sent. */
    public void enterBackground() {
        await("enterBackground", Map.of());
    }

    /** The app is in the foreground again. */
    public void enterForeground() {
        await("enterForeground", Map.of());
    }

    /** Removes all events, tokens, the user and the id of this device. */
    public void wipe() {
        await("wipe", Map.of());
    }

    /** Removes all data and records nothing from now on, in later runs too. */
    public void optOut() {
        await("optOut", Map.of());
    }

    /** Records again after {@link #optOut}. */
    public void optIn() {
        await("optIn", Map.of());
    }
}
