package dev.countersign;

import java.io.Closeable;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Base class of the three clients. Methods may be called from any thread.
 *
 * <p>A future of a recording method completes when the event is on disk. Dependent stages, such as a function
 * passed to {@code thenRun}, may wait for other calls. {@link BloomreachClient} records in memory first.
 *
 * <p>Properties may have values of any class (docs/reference/event-format.md). No value makes a method throw.
 * The client logs to the logger {@code countersign}.
 */
public abstract class Client implements Closeable {
    private static final Logger logger = Logger.getLogger("countersign");
    private static final Map<String, Level> levels =
        Map.of("debug", Level.FINE, "info", Level.INFO, "warning", Level.WARNING);

    /** Returns a token or null. May block. */
    interface Provider {
        String token(Map<String, Object> request) throws Exception;
    }

    private final long number = Native.number();
    private final Provider provider;
    private final Consumer<Map<String, Object>> handler;
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final ExecutorService events = Executors.newSingleThreadExecutor(work -> daemon(work, "countersign-events"));
    private volatile long handle;

    /** Calls the handler with events except log lines, on its own thread, perhaps before the constructor returns. */
    Client(int mode, Map<String, Object> configuration, Provider provider, Consumer<Map<String, Object>> handler) {
        this.provider = provider;
        this.handler = handler;
        Map<String, Object> members = new LinkedHashMap<>(configuration);
        members.putIfAbsent("logLevel", logger.isLoggable(Level.FINE) ? "debug" : logger.isLoggable(Level.INFO) ? "info" : "warning");
        members.put("context", context(members.get("context"), "library", "countersign-jvm"));
        byte[][] error = new byte[1][];
        Native.clients.put(number, this);
        handle = Native.open(mode, number, utf8(json(members)), provider != null, error);
        ready.complete(null);
        if (handle == 0) {
            Native.clients.remove(number);
            events.shutdown();
            @SuppressWarnings("unchecked")
            Map<String, Object> failure = (Map<String, Object>) Json.read(new String(error[0], StandardCharsets.UTF_8));
            throw new CountersignException(failure);
        }
    }

    /** The version of libcountersign. */
    public static String version() {
        return Native.version();
    }

    static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Stores pending events and ends all work. The next client with this queue sends the remaining events. */
    @Override
    public void close() {
        CompletableFuture<Object> closed = new CompletableFuture<>();
        long context = Native.number();
        Native.pending.put(context, closed);
        if (Native.close(handle, context) == Native.OK) closed.join(); else Native.pending.remove(context);
        Native.clients.remove(number);
        events.shutdown();
    }

    CompletableFuture<Object> call(String method, Map<String, ?> arguments) {
        return call(method, arguments, () -> {});
    }

    /** Runs {@code begun} once the library has begun the call, so not after {@link #close}. */
    CompletableFuture<Object> call(String method, Map<String, ?> arguments, Runnable begun) {
        CompletableFuture<Object> future = new CompletableFuture<>();
        long context = Native.number();
        Native.pending.put(context, future);
        int status = Native.call(handle, utf8(method), utf8(json(arguments)), context);
        if (status == Native.OK) {
            begun.run();
        } else {
            Native.pending.remove(context);
            future.completeExceptionally(
                status == Native.CLOSED ? new CountersignException("closed", "the client is closed")
                    : status == Native.FORKED ? new CountersignException("forked", "the process was forked after a client was opened")
                    : new CountersignException("invalid_argument", "a text is not UTF-8"));
        }
        return future;
    }

    private static String json(Map<String, ?> members) {
        return Json.write(members, type ->
            logger.log(Level.WARNING, "a value is left out: its class is not supported class={0}", type.getName()));
    }

    <Value> Value await(String method, Map<String, ?> arguments) {
        return await(call(method, arguments));
    }

    @SuppressWarnings("unchecked")
    static <Value> Value await(CompletableFuture<Object> result) {
        try {
            return (Value) result.join();
        } catch (CompletionException failure) {
            // Adds the caller's stack to the error, which another thread has created.
            if (failure.getCause() instanceof CountersignException) {
                CountersignException error = (CountersignException) failure.getCause();
                error.addSuppressed(new IllegalStateException("called here"));
                throw error;
            }
            throw failure;
        }
    }

    /** Makes a map of names and values, without null values. */
    static Map<String, Object> arguments(Object... namesAndValues) {
        Map<String, Object> members = new LinkedHashMap<>();
        for (int index = 0; index < namesAndValues.length; index += 2) {
            if (namesAndValues[index + 1] != null) members.put((String) namesAndValues[index], namesAndValues[index + 1]);
        }
        return members;
    }

    /** Adds a member that the context lacks. Returns a context that is not a map unchanged: the library rejects it. */
    static Object context(Object given, String name, String value) {
        if (given != null && !(given instanceof Map)) return given;
        Map<String, Object> context = new LinkedHashMap<>();
        if (given != null) ((Map<?, ?>) given).forEach((key, member) -> context.put("" + key, member));
        context.putIfAbsent(name, value);
        return context;
    }

    /** Event counts, and the users whose events wait. */
    public Map<String, Object> snapshot() {
        return await("snapshot", Map.of());
    }

    /** The events in quarantine. */
    public List<Map<String, Object>> quarantinedEvents() {
        return await("quarantinedEvents", Map.of());
    }

    /** Puts quarantined events back into the queue; returns their number. */
    public long requeueQuarantinedEvents() {
        return await("requeueQuarantinedEvents", Map.of());
    }

    /** Deletes quarantined events permanently; returns their number. */
    public long deleteQuarantinedEvents() {
        return await("deleteQuarantinedEvents", Map.of());
    }

    // Callbacks

    void ask(long question, Map<String, Object> request) {
        // The provider may block, so it gets a thread of its own.
        daemon(() -> {
            String token = null;
            try {
                token = provider.token(request);
            } catch (Throwable failure) {
                // Catch errors too, such as Kotlin's TODO(). Uncaught, they would end an Android app.
                logger.log(Level.WARNING, "the token provider failed", failure);
            } finally {
                answer(question, token);
            }
        }, "countersign-provider").start();
    }

    /** Answers a token request. {@code token} may be null. */
    void answer(long question, String token) {
        // The request may arrive before the handle is set. Unlike get, join works in an interrupted thread.
        ready.join();
        Native.answer(handle, question, token == null ? null : utf8(token));
    }

    void hear(Map<String, Object> event) {
        try {
            events.execute(() -> {
                if (event.get("event").equals("log")) {
                    Level level = levels.get(event.get("level"));
                    logger.log(level, "{0} {1}", new Object[] {event.get("message"), event.get("values")});
                    return;
                }
                try {
                    handler.accept(event);
                } catch (Throwable failure) {
                    logger.log(Level.WARNING, "a handler failed", failure);
                }
            });
        } catch (RejectedExecutionException closed) {
            // Events that arrive after the close are dropped.
        }
    }
}
