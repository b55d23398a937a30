package dev.countersign;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Records locations and uploads each of them once, under an access token that refreshes itself. */
public final class LocationClient extends Client {
    /** How a client works. The members of the three groups are as countersign.h has them. */
    public static final class Builder {
        private final Map<String, Object> members = new LinkedHashMap<>();
        private Consumer<Map<String, Object>> authorization;
        private Consumer<Map<String, Object>> uploads;

        /** Where records go, and when. */
        public Builder http(Map<String, ?> http) {
            return set("http", http);
        }

        /** Under which token, and how it is refreshed. */
        public Builder authorization(Map<String, ?> authorization) {
            return set("authorization", authorization);
        }

        /** What is stored, and for how long. */
        public Builder persistence(Map<String, ?> persistence) {
            return set("persistence", persistence);
        }

        /** Told what came of each request for a token: success, status, response, error. It may hold tokens: never log it. */
        public Builder onAuthorization(Consumer<Map<String, Object>> handler) {
            authorization = handler;
            return this;
        }

        /** Told of each attempt to upload: success, status, error. */
        public Builder onUpload(Consumer<Map<String, Object>> handler) {
            uploads = handler;
            return this;
        }

        /** The folder for what waits. On Android a folder below {@code getFilesDir()}. */
        public Builder dataDirectory(String path) {
            return set("dataDirectory", path);
        }

        /** Any other member of the configuration. */
        public Builder set(String name, Object value) {
            members.put(name, value);
            return this;
        }

        /** Opens the client. Throws {@link CountersignException} if it cannot work like that. */
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

    /** Stores a record, at least {@code coords} with latitude and longitude; its uuid, when it is on disk. */
    public CompletableFuture<String> insert(Map<String, ?> record) {
        return call("insert", record).thenApply(uuid -> (String) uuid);
    }

    /** Changes the groups {@code http}, {@code authorization} and {@code persistence}, as far as they are given. */
    public void configure(Map<String, ?> groups) {
        await("configure", groups);
    }

    /** Sends what waits; the records that the server has taken. */
    public List<Map<String, Object>> sync() {
        return await("sync", Map.of());
    }

    /** How many records wait. */
    public long count() {
        return await("count", Map.of());
    }

    /** The records that wait, oldest first. */
    public List<Map<String, Object>> records() {
        return await("records", Map.of());
    }

    /** Removes a record that waits; false if there is none. */
    public boolean remove(String uuid) {
        return await("remove", arguments("uuid", uuid));
    }

    /** Removes all records; tokens stay. */
    public void removeAll() {
        await("removeAll", Map.of());
    }

    /** {@code kind}, {@code reason} and {@code retryIn}. */
    public Map<String, Object> authorizationState() {
        return await("authorizationState", Map.of());
    }

    /** A token for requests of the app's own; replacing: one that was refused, or null. A credential: never log it. */
    public String accessToken(String replacing) {
        return await("accessToken", arguments("replacing", replacing));
    }

    /** Forgets the tokens; records stay. */
    public void forgetTokens() {
        await("forgetTokens", Map.of());
    }
}
