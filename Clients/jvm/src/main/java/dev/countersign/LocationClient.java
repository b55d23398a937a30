package dev.countersign;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Records locations. Retries each upload until a server accepts it. Refreshes the access token of the uploads. */
public final class LocationClient extends Client {
    /** The configuration of a client. The members of the three groups are as in countersign.h. */
    public static final class Builder {
        private final Map<String, Object> members = new LinkedHashMap<>();
        private Consumer<Map<String, Object>> authorization;
        private Consumer<Map<String, Object>> uploads;

        /** The settings of uploads, such as the URL. */
        public Builder http(Map<String, ?> http) {
            return set("http", http);
        }

        /** The access token and its refresh. */
        public Builder authorization(Map<String, ?> authorization) {
            return set("authorization", authorization);
        }

        /** The settings of stored records, such as limits. */
        public Builder persistence(Map<String, ?> persistence) {
            return set("persistence", persistence);
        }

        /**
         * Called after each refresh of the access token, with the members success, status, response and error. The
         * response may hold tokens: never log it.
         */
        public Builder onAuthorization(Consumer<Map<String, Object>> handler) {
            authorization = handler;
            return this;
        }

        /** Called after each upload attempt, with the members success, status and error. */
        public Builder onUpload(Consumer<Map<String, Object>> handler) {
            uploads = handler;
            return this;
        }

        /** The folder of the queue. On Android a folder below {@code getFilesDir()}. */
        public Builder dataDirectory(String path) {
            return set("dataDirectory", path);
        }

        /** Sets another member of the configuration in countersign.h. */
        public Builder set(String name, Object value) {
            members.put(name, value);
            return this;
        }

        /** Opens the client. Throws {@link CountersignException} for an invalid configuration. */
        public LocationClient build() {
            return new LocationClient(members, authorization, uploads);
        }
    }

    private LocationClient(
        Map<String, Object> members, Consumer<Map<String, Object>> authorization, Consumer<Map<String, Object>> uploads) {
        super(1, members, null, event -> {
            if (authorization != null && event.get("event").equals("authorization")) authorization.accept(event);
            if (uploads != null && event.get("event").equals("upload")) uploads.accept(event);
        });
    }

    /** Stores a record with at least {@code coords} (latitude, longitude). Returns its uuid once on disk. */
    public CompletableFuture<String> insert(Map<String, ?> record) {
        return call("insert", record).thenApply(uuid -> (String) uuid);
    }

    /** Changes the given members of {@code http}, {@code authorization} and {@code persistence}; others stay. */
    public void configure(Map<String, ?> groups) {
        await("configure", groups);
    }

    /** Sends queued records; returns the records that the server accepted. */
    public List<Map<String, Object>> sync() {
        return await("sync", Map.of());
    }

    /** The number of queued records. */
    public long count() {
        return await("count", Map.of());
    }

    /** Queued records, oldest first. */
    public List<Map<String, Object>> records() {
        return await("records", Map.of());
    }

    /** Removes a queued record; false if not found. */
    public boolean remove(String uuid) {
        return await("remove", arguments("uuid", uuid));
    }

    /** Removes all records; tokens stay. */
    public void removeAll() {
        await("removeAll", Map.of());
    }

    /** Whether requests can be authorized: {@code kind}, {@code reason}, and {@code retryIn} in seconds. */
    public Map<String, Object> authorizationState() {
        return await("authorizationState", Map.of());
    }

    /** Returns a token for the app's own requests. {@code replacing}: a rejected token, or null. Never log a token. */
    public String accessToken(String replacing) {
        return await("accessToken", arguments("replacing", replacing));
    }

    /** Deletes the tokens; records stay. */
    public void forgetTokens() {
        await("forgetTokens", Map.of());
    }
}
