package dev.countersign;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** The functions and callbacks of countersign.h. Numbers identify clients and calls. */
final class Native {
    static final int OK = 0;
    static final int CLOSED = 1;
    static final int FORKED = 2;

    private static final AtomicLong numbers = new AtomicLong();
    static final Map<Long, Client> clients = new ConcurrentHashMap<>();
    static final Map<Long, CompletableFuture<Object>> pending = new ConcurrentHashMap<>();
    /** Completes futures, not on the library's thread: a dependent stage may wait for a result that arrives there. */
    private static final Executor results = Executors.newCachedThreadPool(work -> Client.daemon(work, "countersign-result"));

    static {
        String path = System.getProperty("countersign.library");
        if (path != null) System.load(path); else if (!loadPackaged()) System.loadLibrary("countersign_jni");
    }

    /** Loads the libraries of the jar from a temporary folder. Returns false if the jar lacks them. */
    private static boolean loadPackaged() {
        String[] names = {"libcountersign.so.0.1", "libcountersign_jni.so"};
        if (Native.class.getResource(names[1]) == null) return false;
        try {
            Path folder = Files.createTempDirectory("countersign-");
            try {
                for (String name : names) {
                    try (InputStream library = Native.class.getResourceAsStream(name)) {
                        Files.copy(library, folder.resolve(name));
                    }
                }
                System.load(folder.resolve(names[1]).toString());
                return true;
            } finally {
                // The file of a loaded library is no longer needed.
                for (String name : names) Files.deleteIfExists(folder.resolve(name));
                Files.deleteIfExists(folder);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private Native() {}

    static long number() {
        return numbers.incrementAndGet();
    }

    static native long open(int mode, long context, byte[] configuration, boolean asks, byte[][] error);
    static native int call(long client, byte[] method, byte[] arguments, long context);
    static native int answer(long client, long number, byte[] token);
    static native int close(long client, long context);
    static native String version();

    // Callbacks, on threads of the library

    @SuppressWarnings("unchecked")
    static void result(long context, byte[] json) {
        CompletableFuture<Object> future = pending.remove(context);
        if (future == null) return;
        Map<String, Object> answer = (Map<String, Object>) Json.read(new String(json, StandardCharsets.UTF_8));
        Runnable complete = () -> {
            if (answer.containsKey("error")) {
                future.completeExceptionally(new CountersignException((Map<String, Object>) answer.get("error")));
            } else {
                future.complete(answer.get("value"));
            }
        };
        try {
            results.execute(complete);
        } catch (Throwable noThread) {
            complete.run();
        }
    }

    @SuppressWarnings("unchecked")
    static void event(long context, byte[] json) {
        Client client = clients.get(context);
        if (client == null) return;
        Map<String, Object> event = (Map<String, Object>) Json.read(new String(json, StandardCharsets.UTF_8));
        client.hear(event);
    }

    @SuppressWarnings("unchecked")
    static void ask(long context, long number, byte[] json) {
        Client client = clients.get(context);
        if (client == null) return;
        try {
            client.ask(number, (Map<String, Object>) Json.read(new String(json, StandardCharsets.UTF_8)));
        } catch (Throwable failure) {
            // Answer even if no thread can be created, because the library waits for an answer.
            client.answer(number, null);
            throw failure;
        }
    }
}
