import dev.countersign.BloomreachClient;
import dev.countersign.Client;
import dev.countersign.CountersignClient;
import dev.countersign.CountersignException;
import dev.countersign.LocationClient;
import dev.countersign.TokenStore;
import dev.countersign.braze.Braze;
import dev.countersign.braze.BrazeConfig;
import dev.countersign.braze.BrazeSdkAuthenticationErrorEvent;
import dev.countersign.exponea.AuthorizationProvider;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Calendar;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.TimeZone;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import java.util.stream.Stream;

/** Tests against a real gateway. Tests/Clients/clients.py passes its credentials as environment variables. */
public final class Tests {
    static String stand(String name) {
        return System.getenv("STAND_" + name);
    }

    static String folder() throws Exception {
        return Files.createTempDirectory(Path.of(stand("FOLDER")), "jvm").toString();
    }

    static void check(boolean isTrue, Object seen) {
        if (!isTrue) throw new AssertionError(String.valueOf(seen));
    }

    static void fails(String code, Runnable work) {
        try {
            work.run();
        } catch (CountersignException error) {
            check(error.getCode().equals(code), error);
            return;
        } catch (CompletionException error) {
            check(error.getCause() instanceof CountersignException, error);
            check(((CountersignException) error.getCause()).getCode().equals(code), error);
            return;
        }
        throw new AssertionError("no error " + code);
    }

    static <Value> Value next(BlockingQueue<Value> queue) throws InterruptedException {
        Value value = queue.poll(60, TimeUnit.SECONDS);
        check(value != null, "nothing arrived within a minute");
        return value;
    }

    static void signedUser() throws Exception {
        List<String> asked = Collections.synchronizedList(new ArrayList<>());
        String folder = folder();
        CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
            .dataDirectory(folder).set("flushPolicy", "manual")
            .tokenProvider(request -> {
                asked.add(request.getUserId() + " " + request.getReason() + " " + request.getCode() + " "
                    + Thread.currentThread().getName());
                return stand("ADA");
            }).build();
        check(client.identify("ada", stand("BOB"), Map.of("plan", "free")).join() != null, "no id");
        check(client.getUserId().equals("ada"), client.getUserId());
        Map<String, Object> properties = new HashMap<>();
        properties.put("total", 42.5);
        properties.put("text", "ä🙂\u0000\ud83d\"\\\n");
        properties.put("none", null);
        properties.put("list", new int[] {1, 2});
        check(client.track("jvm first", properties).join().length() > 10, "no id");
        Map<String, Object> result = client.flush();
        check(result.get("delivered").equals(2L) && result.get("queued").equals(0L), result);
        check(asked.equals(List.of("ada rejected 21 countersign-provider")), asked);
        client.track("jvm second").join();
        check(client.logOut().get("queued").equals(0L), "events are left");
        check(client.getUserId() == null, client.getUserId());
        client.wipe();
        client.optOut();
        fails("opted_out", () -> client.track("jvm never").join());
        client.optIn();
        fails("invalid_argument", () -> client.track("").join());
        client.close();
        client.close();
        fails("closed", client::flush);
        fails("invalid_configuration", () -> new CountersignClient.Builder("nowhere", "wk").build());
        fails("invalid_configuration", () -> new CountersignClient.Builder(stand("ENDPOINT"), "wk").set("limit", 1).build());
    }

    /** With a token store the library stores no token. A new client reads the tokens from that store. */
    static void tokenStores() throws Exception {
        Map<String, String> stored = new ConcurrentHashMap<>();
        TokenStore store = new TokenStore() {
            @Override
            public String token(String userId) {
                return stored.get(userId);
            }

            @Override
            public void store(String token, String userId) {
                stored.put(userId, token);
            }

            @Override
            public void remove(String userId) {
                stored.remove(userId);
            }

            @Override
            public void removeAll() {
                throw new IllegalStateException("the store is locked");
            }
        };
        String folder = folder();
        for (String token : Arrays.asList(stand("ADA"), null)) {
            CountersignClient.Builder builder = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
                .dataDirectory(folder).set("flushPolicy", "manual").tokenStore(store);
            try (CountersignClient client = builder.build()) {
                client.changeUser("ada", token);
                client.track("jvm store").join();
                check(client.flush().get("delivered").equals(1L), client.snapshot());
                check(stored.equals(Map.of("ada", stand("ADA"))), stored.keySet());
                if (token != null) continue;
                client.logOut();
                check(stored.isEmpty(), stored.keySet());
                client.wipe();
            }
        }
        stored.put("ada", stand("EXPIRED"));
        try (CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
                .dataDirectory(folder).set("flushPolicy", "manual").tokenStore(store)
                .tokenProvider(request -> stand("ADA")).build()) {
            client.changeUser("ada", null);
            client.track("jvm store").join();
            check(client.flush().get("delivered").equals(1L), client.snapshot());
            check(stored.equals(Map.of("ada", stand("ADA"))), "the expired token is stored");
        }
        tokensDuringLogOut(store, stored);
        tokensOfRejectedCalls(store, stored);
        try (Stream<Path> files = Files.walk(Path.of(folder))) {
            check(files.noneMatch(file -> file.endsWith("tokens.json")), "the library has stored a token");
        }
    }

    /** A token that the app sets during a log-out is kept. A token that the provider returns after it is not stored. */
    static void tokensDuringLogOut(TokenStore store, Map<String, String> stored) throws Exception {
        CompletableFuture<CountersignClient> opened = new CompletableFuture<>();
        stored.clear();
        try (CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
                .dataDirectory(folder()).set("flushPolicy", "manual").tokenStore(store).tokenProvider(request -> {
                    opened.join().changeUser("ada", stand("ADA"));
                    return null;
                }).build()) {
            client.changeUser("ada", null);
            client.track("jvm store").join();
            opened.complete(client);
            client.logOut();
            check("ada".equals(client.getUserId()) && stored.equals(Map.of("ada", stand("ADA"))), stored.keySet());
            check(client.flush().get("queued").equals(0L), client.snapshot());
            client.logOut();
            check(stored.isEmpty(), stored.keySet());
        }
        CompletableFuture<Thread> asked = new CompletableFuture<>();
        CompletableFuture<Void> hasLoggedOut = new CompletableFuture<>();
        try (CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
                .dataDirectory(folder()).set("flushPolicy", "manual").set("tokenProviderTimeout", 0.1).tokenStore(store)
                .tokenProvider(request -> {
                    asked.complete(Thread.currentThread());
                    hasLoggedOut.join();
                    return stand("ADA");
                }).build()) {
            client.changeUser("ada", null);
            client.track("jvm never").join();
            client.logOut();
            hasLoggedOut.complete(null);
            asked.join().join();
            check(stored.isEmpty(), "a token was stored after the log-out");
            client.wipe();
        }
    }

    /** A call that fails stores no token. */
    static void tokensOfRejectedCalls(TokenStore store, Map<String, String> stored) throws Exception {
        stored.clear();
        CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
            .dataDirectory(folder()).set("flushPolicy", "manual").tokenStore(store).build();
        fails("invalid_argument", () -> client.identify("", stand("ADA"), Map.of()).join());
        fails("invalid_argument", () -> client.changeUser("", stand("ADA")));
        client.changeUser("ada", null);
        fails("invalid_argument", () -> client.setToken(""));
        client.close();
        fails("closed", () -> client.identify("ada", stand("ADA"), Map.of()).join());
        fails("closed", () -> client.changeUser("ada", stand("ADA")));
        check(stored.isEmpty(), stored.keySet());
    }

    /** `appVersion` is added to the other members of the context, whichever is set first. */
    static void contexts() throws Exception {
        Map<String, Object> context = Map.of("parts", List.of("app"), "appBuild", "7");
        for (CountersignClient.Builder builder : List.of(
                new CountersignClient.Builder(stand("ENDPOINT"), "wk").set("context", context).appVersion("1.2"),
                new CountersignClient.Builder(stand("ENDPOINT"), "wk").appVersion("1.2").set("context", context))) {
            builder.set("limits", Map.of("maximumEventBytes", 1)).set("flushPolicy", "manual").dataDirectory(folder());
            try (CountersignClient client = builder.build()) {
                fails("event_too_large", () -> client.track("jvm never").join());
                Map<?, ?> found = (Map<?, ?>) ((Map<?, ?>) client.quarantinedEvents().get(0).get("body")).get("context");
                check(found.get("app").equals(Map.of("version", "1.2", "build", "7")) && !found.containsKey("os"), found);
            }
        }
        fails("invalid_configuration", () -> new CountersignClient.Builder(stand("ENDPOINT"), "wk").set("context", 1).build());
    }

    static void failures() throws Exception {
        BlockingQueue<CountersignClient.AuthenticationFailure> told = new LinkedBlockingQueue<>();
        try (CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
                .dataDirectory(folder()).set("flushPolicy", "manual").onAuthenticationFailure(told::add).build()) {
            client.changeUser("ada", stand("EXPIRED"));
            client.track("jvm expired").join();
            check(client.flush().get("queued").equals(1L), "an expired token was accepted");
            CountersignClient.AuthenticationFailure failure = next(told);
            check(failure.getCode() == 22 && failure.getReason().equals("EXPIRED") && failure.getUserId().equals("ada"), failure.getReason());
            check(failure.getToken().equals(stand("EXPIRED")) && !failure.toString().contains(stand("EXPIRED")), failure);
            client.setToken(stand("ADA"));
            check(client.flush().get("queued").equals(0L), client.snapshot());
        }
    }

    /** A provider that fails answers its request. Otherwise the test would wait an hour for the time-out. */
    static void providers() throws Exception {
        Map<String, CountersignClient.TokenProvider> providers = Map.of(
            "throws an error", request -> {
                throw new NoClassDefFoundError("Backend");
            },
            "throws an exception", request -> {
                throw new java.io.IOException("no network");
            },
            "interrupts its thread", request -> {
                Thread.currentThread().interrupt();
                return null;
            });
        for (Map.Entry<String, CountersignClient.TokenProvider> entry : providers.entrySet()) {
            BlockingQueue<CountersignClient.AuthenticationFailure> told = new LinkedBlockingQueue<>();
            BlockingQueue<Thread> handlerThreads = new LinkedBlockingQueue<>();
            try (CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY"))
                    .dataDirectory(folder()).set("flushPolicy", "manual").set("tokenProviderTimeout", 3600)
                    .tokenProvider(entry.getValue())
                    .onAuthenticationFailure(failure -> {
                        told.add(failure);
                        handlerThreads.add(Thread.currentThread());
                        throw new AssertionError("an error of a handler");
                    }).build()) {
                for (String user : List.of("ada", "bob")) {
                    client.changeUser(user, null);
                    client.track("jvm never").join();
                    client.flush();
                    CountersignClient.AuthenticationFailure failure = next(told);
                    check(failure.getReason().equals("no_token"), entry.getKey() + " " + failure.getReason());
                }
                check(next(handlerThreads) == next(handlerThreads), "the handler's error has ended its thread");
                client.wipe();
            }
        }
    }

    static void locations() throws Exception {
        BlockingQueue<Map<String, Object>> refreshed = new LinkedBlockingQueue<>();
        BlockingQueue<Map<String, Object>> uploads = new LinkedBlockingQueue<>();
        try (LocationClient client = new LocationClient.Builder().dataDirectory(folder())
                .http(Map.of("url", stand("ENDPOINT") + "/api/locations", "autoSync", false))
                .authorization(Map.of(
                    "refreshUrl", stand("ENDPOINT") + "/api/refresh_token", "refreshToken", stand("REFRESH"),
                    "refreshPayload", Map.of("refresh_token", "{refreshToken}")))
                .onAuthorization(refreshed::add).onUpload(uploads::add).build()) {
            fails("invalid_location", () -> client.insert(Map.of("coords", Map.of("latitude", 91, "longitude", 0))).join());
            Map<String, Object> record = Map.of("coords", Map.of("latitude", 46.05, "longitude", 14.51), "uuid", "jvm-location-1");
            check(client.insert(record).join().equals("jvm-location-1"), "a different uuid");
            check(client.count() == 1 && client.records().get(0).get("uuid").equals("jvm-location-1"), client.records());
            check(!client.remove("jvm-location-2"), "removed a record that does not exist");
            check(client.sync().size() == 1, "not sent");
            check(Arrays.stream(LocationClient.class.getMethods()).noneMatch(method -> method.getName().equals("flush")), "a method flush");
            check(next(refreshed).get("success").equals(true) && next(uploads).get("status").equals(200L), "not sent");
            check(client.authorizationState().get("kind").equals("ready"), client.authorizationState());
            check(client.accessToken(null).startsWith("ey"), "no token");
            client.configure(Map.of("http", Map.of("url", "")));
            fails("invalid_url", client::sync);
            client.forgetTokens();
        }
    }

    /** Returns the JSON that the library has stored for a value. */
    static Object stored(LocationClient client, Object value) {
        Map<String, Object> extras = new HashMap<>();
        extras.put("value", value);
        client.removeAll();
        client.insert(Map.of("coords", Map.of("latitude", 1, "longitude", 2), "extras", extras)).join();
        Map<?, ?> found = (Map<?, ?>) client.records().get(0).get("extras");
        return found.containsKey("value") ? found.get("value") : "left out";
    }

    static Object nested(int levels) {
        Object value = 1;
        for (int level = 0; level < levels; level++) value = Collections.singletonList(value);
        return value;
    }

    static int levels(Object value) {
        int levels = 0;
        for (; value instanceof List && !((List<?>) value).isEmpty(); levels++) value = ((List<?>) value).get(0);
        return levels;
    }

    /** Returns a list whose elements throw `failure`. In Kotlin checked exceptions need no declaration. */
    static List<Object> thrower(Throwable failure) {
        return new java.util.AbstractList<Object>() {
            @Override
            public Object get(int index) {
                Tests.<RuntimeException>raise(failure);
                return null;
            }

            @Override
            public int size() {
                return 1;
            }
        };
    }

    @SuppressWarnings("unchecked")
    static <Failure extends Throwable> void raise(Throwable failure) throws Failure {
        throw (Failure) failure;
    }

    /** Values of all classes are stored as in docs/reference/event-format.md, and no value makes a call throw. */
    static void values() throws Exception {
        Instant instant = Instant.parse("2025-06-15T15:06:40.007999Z");
        Calendar calendar = Calendar.getInstance(TimeZone.getTimeZone("Asia/Kolkata"));
        calendar.setTimeInMillis(instant.toEpochMilli());
        Map<Object, Object> circle = new HashMap<>();
        circle.put("self", circle);
        Map<Object, Object> keys = new HashMap<>();
        keys.put(1, "a");
        keys.put(null, "b");
        Iterable<Object> broken = new java.util.AbstractList<Object>() {
            @Override
            public Object get(int index) {
                throw new UnsupportedOperationException();
            }

            @Override
            public int size() {
                return 1;
            }
        };
        Map<Object, Object> otherKeys = new HashMap<>();
        otherKeys.put(Optional.of(5), "a");
        otherKeys.put(new byte[] {0, -1, 16}, "b");
        String text = "2025-06-15T15:06:40.007Z";
        Object[][] table = {
            {otherKeys, Map.of("5", "a", "AP8Q", "b")}, {thrower(new java.io.IOException()), null}, {thrower(new AssertionError()), null},
            {thrower(new Error("TODO")), null},
            {"\ud83d", "\ufffd"}, {'x', "x"}, {new StringBuilder("b"), "b"}, {10.04, 10.04}, {10.04f, 10.04}, {(byte) 1, 1L},
            {9007199254740993L, 9007199254740993L}, {Long.MAX_VALUE, Long.MAX_VALUE}, {Long.MIN_VALUE, Long.MIN_VALUE},
            {new BigInteger("18446744073709551615"), "18446744073709551615"}, {BigInteger.TEN, 10L}, {new AtomicLong(5), 5L},
            {Double.NaN, null}, {Float.NEGATIVE_INFINITY, null}, {new BigDecimal("10.04"), 10.04}, {new BigDecimal("5.00"), 5L},
            {new BigDecimal("12345678901234567890.123"), "12345678901234567890.123"}, {new BigDecimal("1E+1000000"), "1E+1000000"},
            {instant, text}, {new Date(instant.toEpochMilli()), text}, {calendar, text}, {instant.atZone(ZoneId.of("Asia/Kolkata")), text},
            {instant.atOffset(ZoneOffset.ofHours(2)), text}, {Instant.MAX, null}, {LocalDate.of(2025, 6, 15), "2025-06-15"},
            {new UUID(0, 1), "00000000-0000-0000-0000-000000000001"}, {URI.create("https://shop.example/"), "https://shop.example/"},
            {new byte[] {0, -1, 16}, "AP8Q"}, {new int[] {1, 2}, List.of(1L, 2L)}, {new String[] {"a"}, List.of("a")},
            {new HashSet<>(List.of(1)), List.of(1L)}, {Optional.of(5), 5L}, {Optional.empty(), null}, {OptionalInt.of(5), 5L},
            {OptionalDouble.empty(), null}, {Optional.of(Optional.of("a")), "a"}, {null, null}, {TimeUnit.DAYS, "DAYS"},
            {keys, Map.of("1", "a", "null", "b")}, {circle, Collections.singletonMap("self", null)}, {broken, null},
            {new Object(), "left out"}, {(Runnable) () -> {}, "left out"}, {Arrays.asList(new Object(), 1), Arrays.asList(null, 1L)},
        };
        Logger logger = Logger.getLogger("countersign");
        logger.setLevel(java.util.logging.Level.SEVERE);
        try (LocationClient client = new LocationClient.Builder().dataDirectory(folder()).build()) {
            for (Object[] row : table) {
                Object found = stored(client, row[0]);
                check(Objects.equals(found, row[1]), row[1] + " is " + found);
            }
            // The record and its extras are two levels.
            check(levels(stored(client, nested(58))) == 58 && levels(stored(client, nested(20_000))) == 58, "not cut at 58 levels");
            for (String[] time : new String[][] {
                {"2026-11-21T08:30:00+0100", "2026-11-21T07:30:00.000Z"}, {"2026-11-21T08:30:00", "2026-11-21T08:30:00"},
                {"2026-02-30T08:30:00Z", "2026-02-30T08:30:00Z"}}) {
                client.removeAll();
                client.insert(Map.of("coords", Map.of("latitude", 1, "longitude", 2), "timestamp", time[0])).join();
                check(client.records().get(0).get("timestamp").equals(time[1]), client.records());
            }
        }
        logger.setLevel(null);
    }

    /** A function of thenRun may wait for other calls of the same client. */
    static void callbacks() throws Exception {
        Map<String, Object> record = Map.of("coords", Map.of("latitude", 1, "longitude", 2));
        LocationClient client = new LocationClient.Builder().dataDirectory(folder()).build();
        List<java.util.concurrent.Callable<Object>> waits = List.of(
            client::count, client::snapshot, () -> client.insert(record).join(), () -> client.insert(record).get(),
            () -> client.insert(record).thenApply(uuid -> uuid).get(60, TimeUnit.SECONDS),
            () -> CompletableFuture.allOf(client.insert(record), client.insert(record)).thenApply(none -> "all").join(),
            () -> CompletableFuture.supplyAsync(client::count).join(),
            () -> {
                BlockingQueue<String> uuids = new LinkedBlockingQueue<>();
                client.insert(record).thenAccept(uuids::add);
                return next(uuids);
            },
            () -> {
                client.close();
                return "closed";
            });
        for (java.util.concurrent.Callable<Object> wait : waits) {
            BlockingQueue<Object> results = new LinkedBlockingQueue<>();
            client.insert(record).thenRun(() -> {
                try {
                    results.add(wait.call());
                } catch (Exception error) {
                    results.add(error);
                }
            });
            Object result = next(results);
            check(!(result instanceof Exception), result);
        }
    }

    static BloomreachClient.Builder bloomreach() throws Exception {
        return new BloomreachClient.Builder(stand("PROJECT"), stand("PROJECT_KEY"), stand("ENDPOINT"))
            .dataDirectory(folder()).set("flushMode", "MANUAL");
    }

    static void bloomreachMode() throws Exception {
        AuthorizationProvider provider = () -> stand("CUSTOMER");
        try (BloomreachClient client = bloomreach().authorizationProvider(provider).build()) {
            client.identifyCustomer(Map.of("registered", "ada"), Map.of("city", "Bled"));
            client.trackEvent("jvm bloomreach", Map.of("n", 1));
            client.trackCampaignClick("https://shop.example/?xnpe_cmp=abc");
            check(client.flush().get("delivered").equals(3L), client.snapshot());
            check(client.customerIds().get("registered").equals("ada"), client.customerIds());
            check(client.fetchAppInbox().get(0).get("id").equals("offer"), "no message");
            client.markAppInboxAsRead("offer");
            check(client.fetchConsents().get(0).get("id").equals("newsletter"), "no category");
            check(client.fetchInAppMessages().get(0).get("id").equals("hello"), "no message");
            check(client.fetchAttributes(List.of(Map.of("type", "property", "property", "city"))).get(0).get("success").equals(false), "no token needed");
            client.anonymize();
        }
    }

    /** The provider of each sample is created from its class name, as in an Android manifest. */
    static void exponeaSamples() throws Exception {
        for (String sample : List.of("asynchronous", "caching", "constant")) {
            try (BloomreachClient client = bloomreach().authorizationProvider("exponea." + sample + ".ExampleAuthProvider").build()) {
                client.identifyCustomer(Map.of("registered", "ada"), Map.of());
                if (sample.equals("constant")) {
                    // The token of this sample is invalid.
                    fails("authorization_refused", client::fetchAppInbox);
                    continue;
                }
                int before = exponea.Backend.INSTANCE.getCalls();
                for (int times = 0; times < 2; times++) check(client.fetchAppInbox().size() == 1, sample);
                check(exponea.Backend.INSTANCE.getCalls() - before == (sample.equals("caching") ? 1 : 2), sample);
            }
        }
        failsWithTheVendorsMessage(
            "Registered exponea.Missing class has not been found", () -> bloomreach().authorizationProvider("exponea.Missing"));
        failsWithTheVendorsMessage(
            "Registered java.lang.Object class has to implement com.exponea.sdk.services.AuthorizationProvider",
            () -> bloomreach().authorizationProvider("java.lang.Object"));
        failsWithTheVendorsMessage(
            "Advanced auth has been enabled but provider has not been found",
            () -> bloomreach().set("advancedAuthEnabled", true).build());
    }

    interface Attempt {
        Object run() throws Exception;
    }

    /** Checks that the attempt fails, and that its error and the log have the vendor's message. */
    static void failsWithTheVendorsMessage(String words, Attempt attempt) throws Exception {
        logs(words, () -> fails("invalid_configuration", () -> {
            try {
                attempt.run();
            } catch (CountersignException error) {
                check(error.getDetail().equals(words), error);
                throw error;
            } catch (Exception error) {
                throw new AssertionError(error);
            }
        }));
    }

    static void logs(String words, Runnable work) throws Exception {
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Logger logger = Logger.getLogger("countersign");
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord line) {
                lines.add(new SimpleFormatter().formatMessage(line));
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        logger.addHandler(handler);
        try {
            work.run();
            String line = lines.poll(10, TimeUnit.SECONDS);
            check(line != null && line.startsWith(words), line);
        } finally {
            logger.removeHandler(handler);
        }
    }

    /** braze.xml enables SDK Authentication too. The first round has no such line in the file, the second one has. */
    static void brazeXml() throws Exception {
        Path file = Path.of(Tests.class.getResource("/braze.xml").toURI());
        String line = "<bool name=\"com_braze_sdk_authentication_enabled\">true</bool>";
        for (boolean isEnabled : List.of(false, true)) {
            if (isEnabled) Files.writeString(file, Files.readString(file).replace("</resources>", line + "\n</resources>"));
            BlockingQueue<BrazeSdkAuthenticationErrorEvent> rejected = new LinkedBlockingQueue<>();
            Braze.configure(file, new BrazeConfig.Builder().setDataDirectory(folder()).build());
            Braze.getInstance(file).subscribeToSdkAuthenticationFailures(rejected::add);
            Braze.getInstance(file).changeUser("NEW-USER-ID", "JWT-TOKEN-FROM-SERVER");
            Braze.getInstance(file).logCustomEvent("jvm never");
            Braze.getInstance(file).requestImmediateDataFlush();
            // 20: the token was sent. 26: no token was sent.
            check(next(rejected).getErrorCode() == (isEnabled ? 20 : 26), isEnabled);
            Braze.shutdown();
        }
    }

    /** If a server accepts events without a valid token, subscribers get the failure, marked as optional. */
    static void brazeOptional() throws Exception {
        com.sun.net.httpserver.HttpServer server =
            com.sun.net.httpserver.HttpServer.create(new java.net.InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            byte[] answer = ("{\"success\":true,\"accepted\":1,"
                + "\"auth_warning\":{\"error_code\":26,\"reason\":\"MISSING_TOKEN\",\"optional\":true}}").getBytes();
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        BlockingQueue<BrazeSdkAuthenticationErrorEvent> told = new LinkedBlockingQueue<>();
        Braze.configure(null, new BrazeConfig.Builder().setApiKey("wk").setDataDirectory(folder())
            .setCustomEndpoint("http://127.0.0.1:" + server.getAddress().getPort()).setIsSdkAuthenticationEnabled(true).build());
        Braze braze = Braze.getInstance(null);
        // The first subscriber fails. The second one must be called too.
        Logger.getLogger("countersign").setLevel(java.util.logging.Level.SEVERE);
        braze.subscribeToSdkAuthenticationFailures(failure -> {
            throw new IllegalStateException();
        });
        braze.subscribeToSdkAuthenticationFailures(told::add);
        braze.changeUser("ada");
        braze.logCustomEvent("jvm optional");
        braze.requestImmediateDataFlush();
        BrazeSdkAuthenticationErrorEvent error = next(told);
        check(error.isOptional() && error.getErrorCode() == 26 && error.getUserId().equals("ada"), error.getErrorReason());
        Logger.getLogger("countersign").setLevel(null);
        Braze.shutdown();
        server.stop(0);
    }

    /** Empty arguments and calls after `shutdown` do not throw, as in Braze's SDK. */
    static void brazeIsQuiet() throws Exception {
        BlockingQueue<Throwable> uncaught = new LinkedBlockingQueue<>();
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> uncaught.add(error));
        Braze.configure(null, new BrazeConfig.Builder().setApiKey(stand("WRITE_KEY")).setCustomEndpoint(stand("ENDPOINT"))
            .setIsSdkAuthenticationEnabled(true).setDataDirectory(folder()).build());
        Braze braze = Braze.getInstance(null);
        braze.changeUser("");
        braze.changeUser(null);
        braze.setSdkAuthenticationSignature("");
        Braze.shutdown();
        logs("a call had no effect: closed: the client is closed", () -> braze.changeUser("ada"));
        logs("a call had no effect: ", () -> braze.logCustomEvent("jvm never"));
        braze.requestImmediateDataFlush();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().equals("countersign-flush")) thread.join();
        }
        check(uncaught.isEmpty(), uncaught);
        Thread.setDefaultUncaughtExceptionHandler(null);
    }

    /** Braze's samples in both languages deliver. Their placeholder tokens are rejected. */
    static void brazeSamples() throws Exception {
        for (braze.BrazeSamples samples : List.of(new braze.JavaSamples(), new braze.KotlinSamples())) {
            samples.configure();
            samples.subscribe();
            // Called after the sample's own subscriber, which sets a valid token.
            BlockingQueue<BrazeSdkAuthenticationErrorEvent> handled = new LinkedBlockingQueue<>();
            Braze.getInstance(samples).subscribeToSdkAuthenticationFailures(handled::add);
            samples.changeUser();
            String name = "jvm " + samples.getClass().getSimpleName();
            for (String signature : List.of("JWT-TOKEN-FROM-SERVER", "NEW-JWT-TOKEN-FROM-SERVER")) {
                if (signature.startsWith("NEW")) samples.setSignature();
                Braze.getInstance(samples).logCustomEvent(name, Map.of("n", 1));
                Braze.getInstance(samples).requestImmediateDataFlush();
                BrazeSdkAuthenticationErrorEvent error = next(handled);
                check(error.getErrorCode() == 20 && error.getUserId().equals("NEW-USER-ID"), error.getErrorReason());
                check(error.getSignature().equals(signature), "a different signature");
            }
            Braze.shutdown();
            // The next client sends events whose request `shutdown` interrupted.
            try (CountersignClient client = new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY")).build()) {
                check("NEW-USER-ID".equals(client.getUserId()), name + " " + client.getUserId() + " " + client.snapshot());
                client.setToken(stand("NEW_USER"));
                check(client.flush().get("queued").equals(0L), client.snapshot());
                client.logOut();
            }
        }
    }

    static Client clientOf(String mode, String folder) {
        switch (mode) {
            case "signed_user":
                CountersignClient client =
                    new CountersignClient.Builder(stand("ENDPOINT"), stand("WRITE_KEY")).dataDirectory(folder).build();
                client.changeUser("ada", stand("ADA"));
                return client;
            case "access_token":
                return new LocationClient.Builder().dataDirectory(folder)
                    .http(Map.of("url", stand("ENDPOINT") + "/api/locations", "batchSync", true))
                    .authorization(Map.of(
                        "refreshUrl", stand("ENDPOINT") + "/api/refresh_token", "refreshToken", stand("REFRESH"),
                        "refreshPayload", Map.of("refresh_token", "{refreshToken}")))
                    .build();
            default:
                return new BloomreachClient.Builder(stand("PROJECT"), stand("PROJECT_KEY"), stand("ENDPOINT"))
                    .dataDirectory(folder).build();
        }
    }

    /** Records an event. The future is done when the event is on disk, for Bloomreach when it is in memory. */
    static CompletableFuture<?> record(Client client, String name) {
        if (client instanceof CountersignClient) return ((CountersignClient) client).track(name);
        if (client instanceof LocationClient) {
            return ((LocationClient) client)
                .insert(Map.of("coords", Map.of("latitude", 46.05, "longitude", 14.51), "uuid", name));
        }
        ((BloomreachClient) client).trackEvent(name, Map.of());
        return CompletableFuture.completedFuture(null);
    }

    /** Records until killed, and prints the numbers of stored events. With `send`, sends the remaining events. */
    static void record(String mode, String folder, String number) {
        Client client = clientOf(mode, folder);
        if (number.equals("send")) {
            if (client instanceof LocationClient) ((LocationClient) client).sync();
            if (client instanceof CountersignClient) ((CountersignClient) client).flush();
            if (client instanceof BloomreachClient) ((BloomreachClient) client).flush();
            boolean isEmpty = client.snapshot().get("queued").equals(0L);
            client.close();
            System.exit(isEmpty ? 0 : 1);
        }
        for (int event = 0;; event += 5) {
            List<CompletableFuture<?>> stored = new ArrayList<>();
            for (int offset = 0; offset < 5; offset++) stored.add(record(client, "kill " + number + " " + (event + offset)));
            stored.forEach(CompletableFuture::join);
            if (client instanceof BloomreachClient && !client.snapshot().get("unsaved").equals(0L)) continue;
            for (int offset = 0; offset < 5; offset++) System.out.println(event + offset);
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 4 && arguments[0].equals("record")) record(arguments[1], arguments[2], arguments[3]);
        signedUser();
        tokenStores();
        contexts();
        failures();
        providers();
        locations();
        values();
        callbacks();
        bloomreachMode();
        exponeaSamples();
        brazeSamples();
        brazeXml();
        brazeOptional();
        brazeIsQuiet();
        System.out.println(Client.version());
    }
}
