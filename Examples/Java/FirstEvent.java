import dev.countersign.CountersignClient;
import java.util.Map;

public class FirstEvent {
    public static void main(String[] arguments) {
        // The provider asks your backend, which signs a token for request.getUserId().
        try (CountersignClient client = new CountersignClient.Builder("http://127.0.0.1:8787", arguments[0])
                .tokenProvider(request -> arguments[1]).build()) {
            client.identify("user-1");
            client.track("Order Completed", Map.of("total", 42.5)).join();  // on disk: survives a crash
            System.out.println(client.flush());
        }
    }
}
