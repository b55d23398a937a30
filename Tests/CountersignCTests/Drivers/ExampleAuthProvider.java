import java.util.concurrent.CompletableFuture;

/** The caching provider of the vendor's Android documentation, in Java. */
public class ExampleAuthProvider implements AuthorizationProvider {
    private final String answer;
    private String tokenCache = null;
    int loads = 0;

    ExampleAuthProvider(String answer) {
        this.answer = answer;
    }

    @Override
    public String getAuthorizationToken() {
        if (tokenCache == null || tokenCache.isEmpty()) {
            CompletableFuture<String> done = new CompletableFuture<>();
            retrieveTokenAsync(done);
            tokenCache = done.join();
        }
        return tokenCache;
    }

    private void retrieveTokenAsync(CompletableFuture<String> done) {
        loads += 1;
        new Thread(() -> done.complete(answer)).start();
    }
}
