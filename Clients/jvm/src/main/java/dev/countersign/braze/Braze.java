package dev.countersign.braze;

import dev.countersign.CountersignClient;
import dev.countersign.CountersignException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Braze's SDK Authentication over {@link CountersignClient}: code written for com.braze.Braze works with its
 * imports changed. Arguments named {@code context} are ignored.
 */
public final class Braze {
    private static final Logger logger = Logger.getLogger("countersign");
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
                for (IEventSubscriber<BrazeSdkAuthenticationErrorEvent> subscriber : subscribers) {
                    try {
                        subscriber.trigger(new BrazeSdkAuthenticationErrorEvent(failure));
                    } catch (Throwable error) {
                        // The other subscribers are called too.
                        logger.log(Level.WARNING, "a subscriber failed", error);
                    }
                }
            });
        if (given.dataDirectory != null) builder.dataDirectory(given.dataDirectory);
        client = builder.build();
    }

    /** Sets the configuration for the next {@link #getInstance}. Returns false if there is an instance. */
    public static synchronized boolean configure(Object context, BrazeConfig given) {
        if (instance != null) return false;
        configuration = given;
        return true;
    }

    /** Returns the only instance. The first call creates it. Throws {@link IllegalStateException} if not configured. */
    public static synchronized Braze getInstance(Object context) {
        if (instance == null) instance = new Braze(configuration != null ? configuration : new BrazeConfig.Builder().build());
        return instance;
    }

    /** Closes the instance. The next call of {@link #getInstance} creates another. */
    public static synchronized void shutdown() {
        if (instance != null) instance.client.close();
        instance = null;
    }

    /** Logs exceptions, because Braze's methods do not throw. A call after {@link #shutdown} is logged too. */
    private static void attempt(Runnable work) {
        try {
            work.run();
        } catch (CountersignException failure) {
            warn(failure);
        }
    }

    private static Void warn(Throwable failure) {
        logger.log(Level.WARNING, "a call had no effect: {0}", failure.getMessage());
        return null;
    }

    private static boolean isEmpty(String text) {
        return text == null || text.isEmpty();
    }

    /** Sets the current user. An empty id is ignored. */
    public void changeUser(String userId) {
        changeUser(userId, null);
    }

    /** Sets the current user, with a token signed by the app's server. An empty id is ignored. */
    public void changeUser(String userId, String sdkAuthSignature) {
        if (!isEmpty(userId)) attempt(() -> client.changeUser(userId, sendsTokens ? sdkAuthSignature : null));
    }

    /** Sets a new token of the current user. An empty token is ignored. */
    public void setSdkAuthenticationSignature(String signature) {
        if (sendsTokens && !isEmpty(signature)) attempt(() -> client.setToken(signature));
    }

    /**
     * Adds a subscriber for rejected and missing tokens. An unresolved failure is reported again in each session
     * and, if it recurs, at most every five minutes. If {@code isOptional()} is true, the server accepted the data.
     */
    public void subscribeToSdkAuthenticationFailures(IEventSubscriber<BrazeSdkAuthenticationErrorEvent> subscriber) {
        subscribers.add(subscriber);
    }

    public void logCustomEvent(String name) {
        logCustomEvent(name, Map.of());
    }

    public void logCustomEvent(String name, Map<String, ?> properties) {
        client.track(name, properties).thenAccept(id -> {}).exceptionally(Braze::warn);
    }

    /** Sends queued events in the background. */
    public void requestImmediateDataFlush() {
        new Thread(() -> attempt(client::flush), "countersign-flush").start();
    }
}
