package dev.countersign;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Records the actions of users, and delivers each event exactly once to a gateway, under its user's signed token.
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
     * Gets a token for a user. Each call has a thread of its own and may block. Null means that there is no
     * token. Exceptions and errors are logged, and count as null.
     */
    @FunctionalInterface
    public interface TokenProvider {
        String token(TokenRequest request) throws Exception;
    }

    /** The user who needs a token, and the reason. */
    public static final class TokenRequest {
        private final Map<String, Object> members;

        TokenRequest(Map<String, Object> members) {
            this.members = members;
        }

        /** The user to get a token for. Not always the current user. */
        public String getUserId() {
            return (String) members.get("userId");
        }

        /** {@code missing}, {@code expired} or {@code rejected}. */
        public String getReason() {
            return (String) members.get("reason");
        }

        /** The server's code for a rejected token; null otherwise. */
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

        /** A code of docs/reference/error-codes.md, such as 22, also if the device detected the failure. */
        public int getCode() {
            return ((Number) members.get("code")).intValue();
        }

        /** The code's name, such as {@code EXPIRED}. For failures on the device a word such as {@code no_token}. */
        public String getReason() {
            return (String) members.get("reason");
        }

        /** The token's user; null without a user. */
        public String getUserId() {
            return (String) members.get("userId");
        }

        /** The token; null if missing. A credential: never log it. */
        public String getToken() {
            return (String) members.get("token");
        }

        /** Whether the server accepted the events anyway. */
        public boolean isOptional() {
            return Boolean.TRUE.equals(members.get("optional"));
        }

        /** When the request began, in seconds since 1970. */
        public double getRequestTime() {
            return ((Number) members.get("requestTime")).doubleValue();
        }
    }

    public static final class Builder {
        private final Map<String, Object> members = new LinkedHashMap<>();
        private TokenProvider tokenProvider;
        private TokenStore tokenStore;
        private Consumer<AuthenticationFailure> failures;
        private String appVersion;

        /** The gateway's URL and the app's write key. */
        public Builder(String endpoint, String writeKey) {
            members.put("endpoint", endpoint);
            members.put("writeKey", writeKey);
        }

        /** Sets the provider, which is called when a token is missing, expires or is rejected by the gateway. */
        public Builder tokenProvider(TokenProvider provider) {
            tokenProvider = provider;
            return this;
        }

        /** Sets the store for tokens. Without one, the library stores them in a file that only its owner can read. */
        public Builder tokenStore(TokenStore store) {
            tokenStore = store;
            return set("storesTokens", store == null);
        }

        /**
         * Called for rejected and missing tokens, on a thread of the client. An unresolved failure is reported
         * again in each session and, if it recurs, at most every five minutes. Failures of accepted events are
         * reported too: see {@link AuthenticationFailure#isOptional}.
         */
        public Builder onAuthenticationFailure(Consumer<AuthenticationFailure> handler) {
            failures = handler;
            return this;
        }

        /** The folder of the queue. On Android a folder below {@code getFilesDir()}. */
        public Builder dataDirectory(String path) {
            return set("dataDirectory", path);
        }

        /** The app's version, unless the member {@code context} of the configuration has it. */
        public Builder appVersion(String version) {
            appVersion = version;
            return this;
        }

        /** Any other member of the configuration, as in countersign.h. */
        public Builder set(String name, Object value) {
            members.put(name, value);
            return this;
        }

        /** Opens the client. Throws {@link CountersignException} for an invalid configuration. */
        public CountersignClient build() {
            Map<String, Object> given = new LinkedHashMap<>(members);
            if (appVersion != null) given.put("context", context(given.get("context"), "appVersion", appVersion));
            return new CountersignClient(given, tokenProvider, new StoredTokens(tokenStore), failures);
        }
    }

    /** The app's token store, if any. Locked during a change of a token here and in the library. */
    private static final class StoredTokens {
        interface Call {
            Object on(TokenStore store) throws Exception;
        }

        final TokenStore store;
        /** Users with a pending log-out, unless the app has set a token since it began. */
        private final Set<String> signingOut = new HashSet<>();
        private volatile int removals;

        StoredTokens(TokenStore store) {
            this.store = store;
        }

        private synchronized Object perform(Call call) {
            try {
                return store == null ? null : call.on(store);
            } catch (Exception failure) {
                Logger.getLogger("countersign").log(Level.WARNING, "the token store failed", failure);
                return null;
            }
        }

        private void keep(String token, String userId) {
            if (token == null || userId == null) return;
            perform(store -> {
                store.store(token, userId);
                return null;
            });
        }

        /** Stores a token that the app has set. A pending log-out of the user then does not delete it. */
        synchronized void set(String token, String userId) {
            // The library rejects empty texts.
            if (token == null || token.isEmpty() || userId == null || userId.isEmpty()) return;
            signingOut.remove(userId);
            keep(token, userId);
        }

        synchronized void endLogOut(String userId) {
            if (signingOut.remove(userId)) remove(userId);
        }

        synchronized void remove(String userId) {
            removals += 1;
            perform(store -> {
                if (userId == null) store.removeAll(); else store.remove(userId);
                return null;
            });
        }

        /** If the library has no token, returns a stored one, if any. Otherwise stores and returns the provider's. */
        String token(TokenRequest request, TokenProvider provider) throws Exception {
            String userId = request.getUserId();
            Object stored = request.getReason().equals("missing") ? perform(store -> store.token(userId)) : null;
            if (stored != null) return (String) stored;
            int before = removals;
            String token = provider == null ? null : provider.token(request);
            synchronized (this) {
                // The user may have logged out meanwhile.
                if (removals == before) keep(token, userId);
            }
            return token;
        }
    }

    private final StoredTokens tokens;

    private CountersignClient(
        Map<String, Object> members, TokenProvider provider, StoredTokens tokens, Consumer<AuthenticationFailure> failures) {
        super(0, members, provider == null && tokens.store == null ? null : request -> tokens.token(new TokenRequest(request), provider), event -> {
            if (failures != null && event.get("event").equals("authentication_failure")) {
                failures.accept(new AuthenticationFailure(event));
            }
        });
        this.tokens = tokens;
    }

    /** Sets the current user. The provider supplies the token. */
    public CompletableFuture<String> identify(String userId) {
        return identify(userId, null, Map.of());
    }

    /** Sets the current user. Returns the event's id, or null if no event was recorded. */
    public CompletableFuture<String> identify(String userId, String token, Map<String, ?> traits) {
        synchronized (tokens) {
            return call("identify", arguments("userId", userId, "token", token, "traits", traits), () -> tokens.set(token, userId))
                .thenApply(id -> (String) id);
        }
    }

    /** Sets the current user without recording an event. The token may be null. */
    public void changeUser(String userId, String token) {
        CompletableFuture<Object> changed;
        synchronized (tokens) {
            changed = call("changeUser", arguments("userId", userId, "token", token), () -> tokens.set(token, userId));
        }
        await(changed);
    }

    /** Sets a new token of the current user. Events that wait for a token are sent at once. */
    public void setToken(String token) {
        synchronized (tokens) {
            String userId = tokens.store == null ? null : getUserId();
            await(call("setToken", arguments("token", token), () -> tokens.set(token, userId)));
        }
    }

    /** The current user; null without a user. */
    public String getUserId() {
        return await("userId", Map.of());
    }

    /** Records an event. Returns its id when the event is on disk. */
    public CompletableFuture<String> track(String event) {
        return track(event, Map.of());
    }

    /** Records an event. Returns its id when the event is on disk. */
    public CompletableFuture<String> track(String event, Map<String, ?> properties) {
        return call("track", arguments("event", event, "properties", properties)).thenApply(id -> (String) id);
    }

    /** Sends everything that can be sent now: {@code delivered}, {@code queued}, {@code ending} and {@code batches}. */
    public Map<String, Object> flush() {
        return await("flush", Map.of());
    }

    /** Sends the queued events under the user's token, then deletes it. A token that the app sets meanwhile is kept. */
    public Map<String, Object> logOut() {
        String userId;
        CompletableFuture<Object> ended;
        synchronized (tokens) {
            userId = tokens.store == null ? null : getUserId();
            if (userId != null) tokens.signingOut.add(userId);
            ended = call("logOut", Map.of());
        }
        Map<String, Object> result = await(ended);
        if (userId != null) tokens.endLogOut(userId);
        return result;
    }

    /** Begins a session, and retries events that are paused after too many rejected tokens. */
    public void startSession() {
        await("startSession", Map.of());
    }

    public void endSession() {
        await("endSession", Map.of());
    }

    /** Call when the app enters the background. Sends events if {@code onBackground} of the flush policy is true. */
    public void enterBackground() {
        await("enterBackground", Map.of());
    }

    /** Call when the app enters the foreground again. */
    public void enterForeground() {
        await("enterForeground", Map.of());
    }

    /** Removes all events, tokens, the user and the id of this device. */
    public void wipe() {
        await("wipe", Map.of());
        tokens.remove(null);
    }

    /** Removes all data and stops recording, in later runs too. */
    public void optOut() {
        await("optOut", Map.of());
        tokens.remove(null);
    }

    /** Records again after {@link #optOut}. */
    public void optIn() {
        await("optIn", Map.of());
    }
}
