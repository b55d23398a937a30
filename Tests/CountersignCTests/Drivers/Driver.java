import java.util.concurrent.CompletableFuture;

/** Drives libcountersign through JNI. Arguments: the bridge's path, a configuration, a customer token. */
public class Driver {
    static AuthorizationProvider provider;
    static volatile long client;
    static volatile boolean wasOffMain = false;
    static final Thread main = Thread.currentThread();

    static native long open(String configuration);
    static native void answer(long client, long number, String token);
    static native void call(long client, String method, String arguments, CompletableFuture<String> result);
    static native void close(long client, CompletableFuture<String> result);

    /** Called by the bridge on a thread of the SDK: the provider may block, so it gets a thread of its own. */
    static void ask(long number) {
        wasOffMain = Thread.currentThread() != main;
        new Thread(() -> answer(client, number, provider.getAuthorizationToken())).start();
    }

    static String call(String method, String arguments) {
        CompletableFuture<String> result = new CompletableFuture<>();
        call(client, method, arguments, result);
        return result.join();
    }

    public static void main(String[] arguments) {
        System.load(arguments[0]);
        ExampleAuthProvider example = new ExampleAuthProvider(arguments[2]);
        provider = example;
        client = open(arguments[1]);
        if (client == 0) throw new IllegalStateException("no client");
        call("identifyCustomer", "{\"customerIds\":{\"registered\":\"ada\"}}");
        call("trackEvent", "{\"eventType\":\"from java\"}");
        System.out.println("flush " + call("flush", null));
        System.out.println("inbox " + call("fetchAppInbox", null));
        System.out.println("mark " + call("markAppInboxAsRead", "{\"messageId\":\"offer\"}"));
        System.out.println("loads " + example.loads + " off main " + wasOffMain);
        CompletableFuture<String> closed = new CompletableFuture<>();
        close(client, closed);
        closed.join();
    }
}
