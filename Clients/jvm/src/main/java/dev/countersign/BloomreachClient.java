package dev.countersign;

import dev.countersign.exponea.AuthorizationProvider;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.logging.Logger;

/** Records customers and events for a project of Bloomreach Engagement, and fetches content. */
public final class BloomreachClient extends Client {
    /** The configuration of a client. Members are named as in the vendor's Flutter SDK; see countersign.h. */
    public static final class Builder {
        private final Map<String, Object> members = new LinkedHashMap<>();
        private AuthorizationProvider provider;
        private Consumer<Map<String, Object>> failures;

        /** The project, its public API key and its base URL. */
        public Builder(String projectToken, String authorizationToken, String baseUrl) {
            members.put("projectToken", projectToken);
            members.put("authorizationToken", authorizationToken);
            members.put("baseUrl", baseUrl);
        }

        /** Sets the provider for requests that need a customer token. Turns {@code advancedAuthEnabled} on. */
        public Builder authorizationProvider(AuthorizationProvider provider) {
            this.provider = provider;
            return set("advancedAuthEnabled", true);
        }

        /** Creates the provider from its class name, as the vendor's SDK does with {@code ExponeaAuthProvider}. */
        public Builder authorizationProvider(String className) {
            Object made;
            try {
                made = Class.forName(className).getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException failure) {
                throw invalid("Registered " + className + " class has not been found");
            }
            if (!(made instanceof AuthorizationProvider)) {
                throw invalid("Registered " + className + " class has to implement com.exponea.sdk.services.AuthorizationProvider");
            }
            return authorizationProvider((AuthorizationProvider) made);
        }

        /** Logs a message of the vendor's SDK. Returns an exception with the message. */
        private static CountersignException invalid(String message) {
            Logger.getLogger("countersign").warning(message);
            return new CountersignException("invalid_configuration", message);
        }

        /** Called when the server rejects the API key for events. */
        public Builder onDeliveryFailure(Consumer<Map<String, Object>> handler) {
            failures = handler;
            return this;
        }

        /** The folder of the queue. On Android a folder below {@code getFilesDir()}. */
        public Builder dataDirectory(String path) {
            return set("dataDirectory", path);
        }

        /** Sets another member of the configuration, such as flushMode. */
        public Builder set(String name, Object value) {
            members.put(name, value);
            return this;
        }

        /** Opens the client. Throws {@link CountersignException} for an invalid configuration. */
        public BloomreachClient build() {
            return new BloomreachClient(members, provider, failures);
        }
    }

    @SuppressWarnings("unchecked")
    private BloomreachClient(
        Map<String, Object> members, AuthorizationProvider provider, Consumer<Map<String, Object>> failures) {
        super(2, members, provider == null ? null : request -> provider.getAuthorizationToken(), event -> {
            if (failures != null && event.get("event").equals("delivery_failure")) {
                failures.accept((Map<String, Object>) event.get("error"));
            }
        });
    }

    /** Adds ids to the customer and records an update of the customer. */
    public void identifyCustomer(Map<String, String> customerIds, Map<String, ?> properties) {
        await("identifyCustomer", arguments("customerIds", customerIds, "properties", properties));
    }

    /** Records properties of the customer. */
    public void trackCustomer(Map<String, ?> properties) {
        await("trackCustomer", arguments("properties", properties));
    }

    /** Records an event of the customer. */
    public void trackEvent(String eventType, Map<String, ?> properties) {
        await("trackEvent", arguments("eventType", eventType, "properties", properties));
    }

    /** Records that the app was opened through a campaign's link. */
    public void trackCampaignClick(String url) {
        await("trackCampaignClick", arguments("url", url));
    }

    /** Records the device's push token; null when the permission was revoked. */
    public void trackPushToken(String token) {
        await("trackPushToken", arguments("token", token));
    }

    /** Starts over with a new, anonymous customer. */
    public void anonymize() {
        await("anonymize", Map.of());
    }

    /** Sends events. Returns the numbers {@code delivered} and {@code queued}; countersign.h has the other members. */
    public Map<String, Object> flush() {
        return await("flush", Map.of());
    }

    /** Begins a session, and retries projects that are paused after too many rejections. */
    public void startSession() {
        await("startSession", Map.of());
    }

    public void endSession() {
        await("endSession", Map.of());
    }

    /** The ids of the customer, including {@code cookie}. */
    public Map<String, String> customerIds() {
        return await("customerIds", Map.of());
    }

    /** Fetches attributes such as {@code {type: property, property: city}}. Results have success, error and value. */
    public List<Map<String, Object>> fetchAttributes(List<Map<String, String>> attributes) {
        return await("fetchAttributes", arguments("attributes", attributes));
    }

    /** The project's categories of consent. */
    public List<Map<String, Object>> fetchConsents() {
        return await("fetchConsents", Map.of());
    }

    /** The in-app messages of the customer. */
    public List<Map<String, Object>> fetchInAppMessages() {
        return await("fetchInAppMessages", Map.of());
    }

    /** The messages in the customer's App Inbox, newest first. */
    public List<Map<String, Object>> fetchAppInbox() {
        return await("fetchAppInbox", Map.of());
    }

    public void markAppInboxAsRead(String messageId) {
        await("markAppInboxAsRead", arguments("messageId", messageId));
    }

    /** Requests a push notification to this device. */
    public void sendSelfCheck(String pushToken) {
        await("sendSelfCheck", arguments("pushToken", pushToken));
    }

    /** Removes all data of this device; nothing more is recorded. */
    public void wipe() {
        await("wipe", Map.of());
    }
}
