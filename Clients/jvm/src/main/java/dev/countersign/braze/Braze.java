package dev.countersign.braze;

import dev.countersign.CountersignClient;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Braze's SDK Authentication over {@link CountersignClient}: code written for com.braze.Braze works with its imports changed. A
 * context is whatever the app has; nothing is done with it.
 */
public final class Braze {
    private static BrazeConfig configuration;
    private static Braze instance;

    private final CountersignClient client;
    private final boolean sendsTokens;
    private final List<IEventSubscriber<BrazeSdkAuthenticationErrorEvent>> subscribers = new CopyOnWriteArrayList<>();

    private Braze(BrazeConfig given) {
        if (given == null || given.apiKey == null || given.endpoint == null) {
            throw new IllegalStateException("Braze.configure needs an API key and a custom endpoint, from its builder or braze.xml");
        }
        sendsTokens = given.isSdkAuthenticationEnabled;
        CountersignClient.Builder builder = new CountersignClient.Builder(given.endpoint, given.apiKey).onAuthenticationFailure(
            failure -> {
                if (failure.isOptional()) return;
                for (IEventSubscriber<BrazeSdkAuthenticationErrorEvent> subscriber : subscribers) {
                    subscriber.trigger(new BrazeSdkAuthenticationErrorEvent(failure));
                }
            });
        if (given.dataDirectory != null) builder.dataDirectory(given.dataDirectory);
        client = builder.build();
    }

    /** Sets what the next {@link #getInstance} works by. Returns false once there is an instance. */
    public static synchronized boolean configure(Object context, BrazeConfig given) {
        if (instance != null) return false;
        configuration = given;
        return true;
    }

    /** The instance, made by the first call. */
    public static synchronized Braze getInstance(Object context) {
        if (instance == null) instance = new Braze(configuration != null ? configuration : new BrazeConfig.Builder().build());
        return instance;
    }

    /** Ends the instance; the next call of {@link #getInstance} makes another. */
    public static synchronized void shutdown() {
        if (instance != null) instance.client.close();
        instance = null;
    }

    /** Says who the user is. */
    public void changeUser(String userId) {
        changeUser(userId, null);
    }

    /** Says who the user is, with the token that the app's server has signed for them. */
    public void changeUser(String userId, String sdkAuthSignature) {
        client.changeUser(userId, sendsTokens ? sdkAuthSignature : null);
    }

    /** A new token of the present user. */
    public void setSdkAuthenticationSignature(String signature) {
        if (sendsTokens) client.setToken(signature);
    }

    /** Is told of refused and missing tokens, each once. */
    public void subscribeToSdkAuthenticationFailures(IEventSubscriber<BrazeSdkAuthenticationErrorEvent> subscriber) {
        subscribers.add(subscriber);
    }

    /** Records an event. */
    public void logCustomEvent(String name) {
        logCustomEvent(name, Map.of());
    }

    /** Records an event. */
    public void logCustomEvent(String name, Map<String, ?> properties) {
        client.track(name, properties);
    }

    /** Sends what waits; returns at once. */
    public void requestImmediateDataFlush() {
        new Thread(client::flush, "countersign-flush").start();
    }
}
