package dev.countersign;

import dev.countersign.exponea.AuthorizationProvider;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.logging.Logger;

/** Records customers and events for a project of Bloomreach Engagement, and asks for content. */
public final class BloomreachClient extends Client {
    /** How a client works. Members are those of the vendor's Flutter SDK, as countersign.h has them. */
    public static final class Builder {
        private final Map<String, Object> members = new LinkedHashMap<>();
        private AuthorizationProvider provider;
        private Consumer<Map<String, Object>> failures;

        /** The project, its public API key and where it is. */
        public Builder(String projectToken, String authorizationToken, String baseUrl) {
            members.put("projectToken", projectToken);
            members.put("authorizationToken", authorizationToken);
            members.put("baseUrl", baseUrl);
        }

        /** Asked for customer tokens, for every request that needs one. Turns {@code advancedAuthEnabled} on. */
        public Builder authorizationProvider(AuthorizationProvider provider) {
            this.provider = provider;
            return set("advancedAuthEnabled", true);
        }

        /** As {@code ExponeaAuthProvider} in the manifest of an Android app: a class that is made here. */
        public Builder authorizationProvider(String className) {
            Object made;
            try {
                made = Class.forName(className).getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException failure) {
                throw refusal("Registered " + className + " class has not been found");
            }
            if (!(made instanceof AuthorizationProvider)) {
                throw refusal("Registered " + className + " class has to implement com.exponea.sdk.services.AuthorizationProvider");
            }
            return authorizationProvider((AuthorizationProvider) made);
        }

        /** Logs what the vendor's SDK logs, in its words. */
        private static CountersignException refusal(String message) {
            Logger.getLogger("countersign").warning(message);
            return new CountersignException("invalid_configuration", message);
        }

        /** Told that the server refuses what is tracked because of the API key. */
        public Builder onDeliveryFailure(Consumer<Map<String, Object>> handler) {
            failures = handler;
            return this;
        }

        /** The folder for what waits. On Android a folder below {@code getFilesDir()}. */
        public Builder dataDirectory(String path) {
            return set("dataDirectory", path);
        }

        /** Any other member of the configuration, such as flushMode. */
        public Builder set(String name, Object value) {
            members.put(name, value);
            return this;
        }

        /** Opens the client. Throws {@link CountersignException} if it cannot work like that. */
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

    /** Adds ids to the customer and records an update. */
    public void identifyCustomer(Map<String, String> customerIds, Map<String, ?> properties) {
        await("identifyCustomer", arguments("customerIds", customerIds, "properties", properties));
    }

    /** Records what is known of the customer. */
    public void trackCustomer(Map<String, ?> properties) {
        await("trackCustomer", arguments("properties", properties));
    }

    /** Records that the customer did something. */
    public void trackEvent(String eventType, Map<String, ?> properties) {
        await("trackEvent", arguments("eventType", eventType, "properties", properties));
    }

    /** Records that the app was opened through a campaign's link. */
    public void trackCampaignClick(String url) {
        await("trackCampaignClick", arguments("url", url));
    }

    /** Records the device's push token; null when the person has taken the permission back. */
    public void trackPushToken(String token) {
        await("trackPushToken", arguments("token", token));
    }

    /** Starts over with a customer of whom nothing is known. */
    public void anonymize() {
        await("anonymize", Map.of());
    }

    /** Sends everything that can be sent now: {@code delivered}, {@code queued}, {@code ending} and {@code batches}. */
    public Map<String, Object> flush() {
        return await("flush", Map.of());
    }

    /** Begins a session. */
    public void startSession() {
        await("startSession", Map.of());
    }

    /** Ends the session. */
    public void endSession() {
        await("endSession", Map.of());
    }

    /** The ids of the customer, {@code cookie} among them. */
    public Map<String, String> customerIds() {
        return await("customerIds", Map.of());
    }

    /** Each of type {@code property} or {@code id}; answers with success, error and value. */
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

    /** Marks a message as read. */
    public void markAppInboxAsRead(String messageId) {
        await("markAppInboxAsRead", arguments("messageId", messageId));
    }

    /** Asks for a push notification to this device. */
    public void sendSelfCheck(String pushToken) {
        await("sendSelfCheck", arguments("pushToken", pushToken));
    }

    /** Removes all data of this device; nothing more is recorded. */
    public void wipe() {
        await("wipe", Map.of());
    }
}
