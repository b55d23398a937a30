/*
 * Tests libcountersign in its three modes against a gateway: results, events, token providers that answer later and
 * from other threads, closed clients, forks. Exits with 1 at the first failed check.
 *
 * usage: driver FOLDER ENDPOINT WRITE_KEY PROJECT PROJECT_KEY TOKEN_OF_ADA TOKEN_OF_BOB REFRESH_TOKEN CUSTOMER_TOKEN
 *        driver record MODE CONFIGURATION ROUND    records until killed, and prints the numbers of stored events
 *        driver send MODE CONFIGURATION            sends the remaining events
 */
#define _GNU_SOURCE
#include <countersign.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUL COUNTERSIGN_NUL_TERMINATED

static void fail(const char *what, const char *seen, int line) {
    fprintf(stderr, "driver.c:%d: %s\n  %s\n", line, what, seen ? seen : "");
    _exit(1);
}
#define CHECK(condition, seen) \
    do { \
        if (!(condition)) fail(#condition, seen, __LINE__); \
    } while (0)

/* Passes the text of one callback to a waiting thread. */
struct box {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    char *text;
    pthread_t thread;
};

static void prepare(struct box *box) {
    memset(box, 0, sizeof *box);
    pthread_mutex_init(&box->lock, NULL);
    pthread_cond_init(&box->filled, NULL);
}

static void put(void *context, const char *json, size_t length) {
    struct box *box = context;
    CHECK(strlen(json) == length, json);
    pthread_mutex_lock(&box->lock);
    CHECK(box->text == NULL, "a callback came twice");
    box->text = strndup(json, length);
    box->thread = pthread_self();
    pthread_cond_signal(&box->filled);
    pthread_mutex_unlock(&box->lock);
}

static char *take(struct box *box) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&box->lock);
    while (!box->text) CHECK(pthread_cond_timedwait(&box->filled, &box->lock, &end) == 0, "no result within a minute");
    char *text = box->text;
    box->text = NULL;
    pthread_mutex_unlock(&box->lock);
    CHECK(!pthread_equal(box->thread, pthread_self()), "the callback ran on the caller's thread");
    pthread_mutex_destroy(&box->lock);
    pthread_cond_destroy(&box->filled);
    return text;
}

static char *call(countersign_client *client, const char *method, const char *arguments) {
    struct box box;
    prepare(&box);
    CHECK(countersign_call(client, method, strlen(method), arguments, NUL, put, &box) == COUNTERSIGN_OK, method);
    return take(&box);
}

/* Calls a method. Fails unless its result contains `part`. */
static void want(countersign_client *client, const char *method, const char *arguments, const char *part, int line) {
    char *answer = call(client, method, arguments);
    if (!strstr(answer, part)) {
        fprintf(stderr, "%s: no %s in\n", method, part);
        fail(method, answer, line);
    }
    free(answer);
}
#define WANT(client, method, arguments, part) want(client, method, arguments, part, __LINE__)

static void finish(countersign_client *client) {
    struct box box;
    prepare(&box);
    CHECK(countersign_close(client, put, &box) == COUNTERSIGN_OK, "close");
    char *answer = take(&box);
    CHECK(!strcmp(answer, "{\"value\":null}"), answer);
    free(answer);
    CHECK(countersign_close(client, NULL, NULL) == COUNTERSIGN_CLOSED, "a second close");
    CHECK(countersign_call(client, "flush", 5, NULL, 0, put, NULL) == COUNTERSIGN_CLOSED, "a call after the close");
    CHECK(countersign_answer(client, 1, "token", NUL) == COUNTERSIGN_CLOSED, "an answer after the close");
}

/* The texts that a client with keepsTexts passed to callbacks. They stay valid after the callbacks. */
struct kept {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *texts[32];
    int count;
};

static void keep(void *context, const char *json, size_t length) {
    struct kept *kept = context;
    CHECK(strlen(json) == length, json);
    pthread_mutex_lock(&kept->lock);
    CHECK(kept->count < 32, "more texts than expected");
    kept->texts[kept->count++] = (char *)json;
    pthread_cond_broadcast(&kept->changed);
    pthread_mutex_unlock(&kept->lock);
}

static void keep_question(void *context, uint64_t number, const char *request, size_t length) {
    (void)number;
    keep(context, request, length);
}

/* Waits for a text that contains `part`, and so reads texts after their callbacks have returned. */
static void await_kept(struct kept *kept, const char *part) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&kept->lock);
    for (;;) {
        int index = 0;
        while (index < kept->count && !strstr(kept->texts[index], part)) index++;
        if (index < kept->count) break;
        CHECK(pthread_cond_timedwait(&kept->changed, &kept->lock, &end) == 0, part);
    }
    pthread_mutex_unlock(&kept->lock);
}

/* The events and token requests that a client's callbacks received, and the token to answer with. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    countersign_client *client;
    char *last[8]; /* events except log lines */
    int events, asked;
    char *request;
    const char *token;
};

static void hear(void *context, const char *json, size_t length) {
    struct heard *heard = context;
    if (strstr(json, "\"event\":\"log\"")) return;
    pthread_mutex_lock(&heard->lock);
    if (heard->events < 8) heard->last[heard->events++] = strndup(json, length);
    pthread_cond_broadcast(&heard->changed);
    pthread_mutex_unlock(&heard->lock);
}

struct question {
    struct heard *heard;
    uint64_t number;
};

static void *answer(void *context) {
    struct question *question = context;
    struct heard *heard = question->heard;
    pthread_mutex_lock(&heard->lock);
    while (!heard->client) pthread_cond_wait(&heard->changed, &heard->lock);
    const char *token = heard->token;
    pthread_mutex_unlock(&heard->lock);
    countersign_answer(heard->client, question->number, token, NUL);
    free(question);
    return NULL;
}

/* A token provider that answers later, from another thread. */
static void ask(void *context, uint64_t number, const char *request, size_t length) {
    struct heard *heard = context;
    pthread_mutex_lock(&heard->lock);
    heard->asked += 1;
    free(heard->request);
    heard->request = strndup(request, length);
    pthread_mutex_unlock(&heard->lock);
    struct question *question = malloc(sizeof *question);
    question->heard = heard;
    question->number = number;
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    CHECK(pthread_create(&thread, &detached, answer, question) == 0, "no thread");
    pthread_attr_destroy(&detached);
}

static void listen_to(struct heard *heard, countersign_client *client, const char *error) {
    CHECK(client, error);
    pthread_mutex_lock(&heard->lock);
    heard->client = client;
    pthread_cond_broadcast(&heard->changed);
    pthread_mutex_unlock(&heard->lock);
}

/* Waits for an event that contains `part`. */
static void await(struct heard *heard, const char *part) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&heard->lock);
    for (int next = 0;;) {
        while (next < heard->events)
            if (strstr(heard->last[next++], part)) {
                pthread_mutex_unlock(&heard->lock);
                return;
            }
        CHECK(pthread_cond_timedwait(&heard->changed, &heard->lock, &end) == 0, part);
    }
}

static void forget(struct heard *heard) {
    for (int number = 0; number < heard->events; number++) free(heard->last[number]);
    free(heard->request);
    memset(heard, 0, sizeof *heard);
    pthread_mutex_init(&heard->lock, NULL);
    pthread_cond_init(&heard->changed, NULL);
}

static void refuse(const char *configuration, const char *part) {
    char *error = NULL;
    size_t length = 0;
    CHECK(!countersign_open_signed_user(configuration, NUL, NULL, NULL, NULL, &error, &length), configuration);
    CHECK(error && strlen(error) == length && strstr(error, part), error);
    countersign_free(error);
    CHECK(!countersign_open_signed_user(configuration, NUL, NULL, NULL, NULL, NULL, NULL), configuration);
}

static char *format(const char *form, ...) {
    va_list list;
    va_start(list, form);
    char *text = NULL;
    CHECK(vasprintf(&text, form, list) >= 0, form);
    va_end(list);
    return text;
}

/* A forked child lacks the client's threads. Each function must report the fork there, and not hang or crash. */
static void fork_once(countersign_client *client) {
    pid_t child = fork();
    if (child == 0) {
        char *error = NULL;
        alarm(30);
        bool good = countersign_call(client, "flush", 5, NULL, 0, put, NULL) == COUNTERSIGN_FORKED
            && countersign_close(client, put, NULL) == COUNTERSIGN_FORKED
            && countersign_answer(client, 1, NULL, 0) == COUNTERSIGN_FORKED
            && !countersign_open_access_token("{}", NUL, NULL, NULL, &error, NULL) && strstr(error, "\"forked\"");
        countersign_free(error);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child of a fork");
}

static atomic_bool has_forked;

/* Calls with an unknown handle allocate no memory. The sanitizer's allocator may be locked in a forked child. */
static void *call_repeatedly(void *handle) {
    while (!has_forked) countersign_call(handle, NULL, 0, NULL, 0, NULL, NULL);
    return NULL;
}

/* Another thread uses the library meanwhile, so that some children are forked while that thread holds a lock. */
static void fork_with(countersign_client *client) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call_repeatedly, (void *)-1) == 0, "a thread");
    for (int i = 0; i < 200; i++) fork_once(client);
    has_forked = true;
    pthread_join(thread, NULL);
}

static void signed_user(char **given) {
    struct heard heard = {0};
    forget(&heard);
    refuse("nonsense", "\"invalid_configuration\"");
    refuse("{}", "endpoint must be a text that is not empty");
    refuse("{\"endpoint\":\"http://a\",\"writeKey\":\"w\",\"limits\":{\"max\":1}}", "there is no limits.max");
    refuse("{\"endpoint\":\"http://a\",\"writeKey\":\"w\",\"batchEvents\":1.5}", "batchEvents must be a whole number");
    refuse("\xff", "\"invalid_configuration\"");
    char *configuration = format(
        "{\"endpoint\":\"%s\",\"writeKey\":\"%s\",\"dataDirectory\":\"%s\",\"flushPolicy\":\"manual\"}", given[1], given[2],
        given[0]);
    char *error = NULL;
    heard.token = given[5];
    countersign_client *client = countersign_open_signed_user(configuration, NUL, ask, hear, &heard, &error, NULL);
    listen_to(&heard, client, error);
    CHECK(countersign_call(client, NULL, 0, NULL, 0, put, NULL) == COUNTERSIGN_INVALID, "no method");
    CHECK(countersign_call(client, "\xff", 1, NULL, 0, put, NULL) == COUNTERSIGN_INVALID, "no UTF-8");
    WANT(client, "fly", NULL, "there is no method fly");
    WANT(client, "track", "[]", "the arguments must be a JSON object");
    WANT(client, "track", "{\"event\":7}", "event must be a text");
    WANT(client, "track", "{\"event\":\"c\",\"kind\":\"fly\"}", "kind must be track");
    WANT(client, "userId", NULL, "{\"value\":null}");

    /* The token is another user's. The gateway rejects it, and the client calls the provider. */
    char *user = format("{\"userId\":\"ada\",\"token\":\"%s\",\"traits\":{\"plan\":\"free\"}}", given[6]);
    WANT(client, "identify", user, "{\"value\":\"");
    WANT(client, "userId", NULL, "{\"value\":\"ada\"}");
    WANT(client, "track", "{\"event\":\"c first\",\"properties\":{\"total\":42.5,\"text\":\"\xc3\xa4\"}}", "{\"value\":\"");
    WANT(client, "flush", NULL, "\"delivered\":2,\"ending\":\"drained\",\"queued\":0");
    CHECK(heard.asked == 1 && strstr(heard.request, "\"code\":21") && strstr(heard.request, "\"userId\":\"ada\""), heard.request);
    /* A call without a callback. The length of its arguments excludes the last character. Events stay in order. */
    CHECK(countersign_call(client, "track", 5, "{\"event\":\"c second\"}!", 20, NULL, NULL) == COUNTERSIGN_OK, "track");
    WANT(client, "track", "{\"event\":\"c screen\",\"kind\":\"screen\"}", "{\"value\":\"");
    WANT(client, "snapshot", NULL, "\"queued\":2");
    fork_with(client);
    WANT(client, "logOut", NULL, "\"delivered\":2");
    WANT(client, "userId", NULL, "{\"value\":null}");

    /* The provider returns ada's token for eve, so the gateway rejects eve's event. */
    WANT(client, "changeUser", "{\"userId\":\"eve\"}", "{\"value\":null}");
    WANT(client, "track", "{\"event\":\"c never\"}", "{\"value\":\"");
    WANT(client, "flush", NULL, "\"queued\":1");
    await(&heard, "\"event\":\"authentication_failure\"");
    WANT(client, "snapshot", NULL, "\"userId\":\"eve\"");
    WANT(client, "quarantinedEvents", NULL, "{\"value\":[]}");
    WANT(client, "wipe", NULL, "{\"value\":null}");
    WANT(client, "optOut", NULL, "{\"value\":null}");
    WANT(client, "track", "{\"event\":\"c never\"}", "\"code\":\"opted_out\"");
    WANT(client, "optIn", NULL, "{\"value\":null}");
    WANT(client, "snapshot", NULL, "\"queued\":0");
    finish(client);
    forget(&heard);

    /* Calls that are pending at a close get their results before the result of the close. */
    client = countersign_open_signed_user(configuration, NUL, NULL, hear, &heard, &error, NULL);
    CHECK(client, error);
    struct box flush, track;
    prepare(&flush);
    prepare(&track);
    char *known = format("{\"userId\":\"ada\",\"token\":\"%s\"}", given[5]);
    countersign_call(client, "changeUser", 10, known, NUL, NULL, NULL);
    countersign_call(client, "track", 5, "{\"event\":\"c last\"}", NUL, put, &track);
    countersign_call(client, "flush", 5, NULL, 0, put, &flush);
    finish(client);
    CHECK(track.text && strstr(track.text, "{\"value\":\""), track.text);
    CHECK(flush.text && strstr(flush.text, "\"ending\""), flush.text);
    free(take(&track));
    free(take(&flush));
    /* The next client sends events whose request the close interrupted. */
    client = countersign_open_signed_user(configuration, NUL, NULL, hear, &heard, &error, NULL);
    CHECK(client, error);
    free(call(client, "setToken", known));
    WANT(client, "flush", NULL, "\"queued\":0");
    finish(client);
    forget(&heard);
    free(configuration);
    free(user);
    free(known);
}

static void access_token(char **given) {
    struct heard heard = {0};
    forget(&heard);
    char *error = NULL;
    CHECK(!countersign_open_access_token("{\"http\":{\"url\":5}}", NUL, NULL, NULL, &error, NULL), "a url of 5");
    CHECK(strstr(error, "http.url must be a text"), error);
    countersign_free(error);
    error = NULL;
    char *configuration = format(
        "{\"dataDirectory\":\"%s\",\"http\":{\"autoSync\":false,\"batchSync\":true},\"authorization\":{\"refreshUrl\":"
        "\"%s/api/refresh_token\",\"refreshToken\":\"%s\",\"refreshPayload\":{\"refresh_token\":\"{refreshToken}\"}}}",
        given[0], given[1], given[7]);
    countersign_client *client = countersign_open_access_token(configuration, NUL, hear, &heard, &error, NULL);
    listen_to(&heard, client, error);
    WANT(client, "insert", "{\"coords\":{\"latitude\":91,\"longitude\":14}}", "\"code\":\"invalid_location\"");
    WANT(client, "insert", "{\"coords\":{\"latitude\":46.05,\"longitude\":14.51},\"uuid\":\"c-location-1\"}", "\"c-location-1\"");
    WANT(client, "insert", "{\"coords\":{\"latitude\":46.06,\"longitude\":14.52},\"uuid\":\"c-location-2\"}", "\"c-location-2\"");
    WANT(client, "insert", "{\"coords\":{\"latitude\":46.07,\"longitude\":14.53},\"uuid\":\"c-location-3\"}", "\"c-location-3\"");
    WANT(client, "count", NULL, "{\"value\":3}");
    WANT(client, "records", NULL, "\"uuid\":\"c-location-2\"");
    WANT(client, "remove", "{\"uuid\":\"c-location-3\"}", "{\"value\":true}");
    WANT(client, "sync", NULL, "\"code\":\"invalid_url\"");
    WANT(client, "configure", "{\"http\":{\"uri\":\"x\"}}", "there is no http.uri");
    char *change = format("{\"http\":{\"url\":\"%s/api/locations\"}}", given[1]);
    WANT(client, "configure", change, "{\"value\":null}");
    WANT(client, "sync", NULL, "\"uuid\":\"c-location-2\"");
    await(&heard, "\"event\":\"authorization\"");
    await(&heard, "\"event\":\"upload\"");
    WANT(client, "authorizationState", NULL, "\"kind\":\"ready\"");
    WANT(client, "accessToken", NULL, "{\"value\":\"ey");
    WANT(client, "count", NULL, "{\"value\":0}");
    WANT(client, "snapshot", NULL, "\"sent\":2");
    WANT(client, "forgetTokens", NULL, "{\"value\":null}");
    WANT(client, "authorizationState", NULL, "\"kind\":\"no_credential\"");
    finish(client);
    forget(&heard);
    free(configuration);
    free(change);
}

static void bloomreach(char **given) {
    struct heard heard = {0};
    forget(&heard);
    char *configuration = format(
        "{\"projectToken\":\"%s\",\"authorizationToken\":\"%s\",\"baseUrl\":\"%s\",\"advancedAuthEnabled\":true,\"flushMode\":"
        "\"MANUAL\",\"dataDirectory\":\"%s\"}",
        given[3], given[4], given[1], given[0]);
    char *error = NULL;
    CHECK(!countersign_open_bloomreach(configuration, NUL, NULL, NULL, NULL, &error, NULL), "no provider");
    CHECK(strstr(error, "Advanced auth has been enabled but provider has not been found"), error);
    countersign_free(error);
    error = NULL;
    heard.token = given[8];
    countersign_client *client = countersign_open_bloomreach(configuration, NUL, ask, hear, &heard, &error, NULL);
    listen_to(&heard, client, error);
    WANT(client, "identifyCustomer", "{\"customerIds\":{\"registered\":\"ada\"},\"properties\":{\"city\":\"Bled\"}}", "null");
    WANT(client, "customerIds", NULL, "\"registered\":\"ada\"");
    WANT(client, "trackEvent", "{\"eventType\":\"c bloomreach\",\"properties\":{\"n\":1}}", "{\"value\":null}");
    WANT(client, "trackEvent", "{\"eventType\":7}", "eventType must be a text");
    WANT(client, "trackCampaignClick", "{\"url\":\"https://shop.example/?xnpe_cmp=abc\"}", "{\"value\":null}");
    WANT(client, "flush", NULL, "\"delivered\":3");
    WANT(client, "fetchConsents", NULL, "\"id\":\"newsletter\"");
    WANT(client, "fetchInAppMessages", NULL, "\"id\":\"hello\"");
    /* The API key cannot read attributes of a customer with a hard id. */
    WANT(client, "fetchAttributes", "{\"attributes\":[{\"type\":\"property\",\"property\":\"city\"}]}", "\"success\":false");
    WANT(client, "fetchAppInbox", NULL, "\"id\":\"offer\"");
    WANT(client, "markAppInboxAsRead", "{\"messageId\":\"offer\"}", "{\"value\":null}");
    WANT(client, "sendSelfCheck", "{\"pushToken\":\"push\"}", "\"status\":409");
    CHECK(heard.asked >= 2, heard.request);
    heard.token = NULL;
    WANT(client, "fetchAppInbox", NULL, "\"code\":\"no_customer_token\"");
    heard.token = "not.a.token";
    WANT(client, "fetchAppInbox", NULL, "\"authCode\":20");
    WANT(client, "anonymize", NULL, "{\"value\":null}");
    WANT(client, "trackPushToken", "{\"token\":null}", "{\"value\":null}");
    WANT(client, "wipe", NULL, "{\"value\":null}");
    finish(client);
    forget(&heard);
    free(configuration);
}

/* With keepsTexts, texts of results, events and token requests belong to the receiver, which frees them. */
static void kept_texts(char **given) {
    struct kept kept = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    char *configuration = format(
        "{\"endpoint\": \"%s\", \"writeKey\": \"%s\", \"dataDirectory\": \"%s/kept\", \"flushPolicy\": \"manual\", \"keepsTexts\": true}",
        given[1], given[2], given[0]);
    countersign_client *client = countersign_open_signed_user(configuration, NUL, keep_question, keep, &kept, NULL, NULL);
    CHECK(client, "no client");
    const char *user = "{\"userId\": \"ada\", \"token\": \"no token\"}", *event = "{\"event\": \"kept\"}";
    countersign_call(client, "changeUser", NUL, user, NUL, keep, &kept);
    await_kept(&kept, "{\"value\":null}");
    await_kept(&kept, "authentication_failure");
    countersign_call(client, "track", NUL, event, NUL, keep, &kept);
    countersign_call(client, "flush", NUL, NULL, 0, keep, &kept);
    await_kept(&kept, "\"reason\":\"missing\"");
    countersign_call(client, "nothing", NUL, NULL, 0, keep, &kept);
    await_kept(&kept, "invalid_argument");
    CHECK(countersign_close(client, keep, &kept) == COUNTERSIGN_OK, "close");
    await_kept(&kept, "\"ending\"");
    pthread_mutex_lock(&kept.lock);
    int closed = kept.count;
    while (strcmp(kept.texts[closed - 1], "{\"value\":null}")) {
        pthread_cond_wait(&kept.changed, &kept.lock);
        closed = kept.count;
    }
    for (int index = 0; index < closed; index++) countersign_free(kept.texts[index]);
    pthread_mutex_unlock(&kept.lock);
    free(configuration);
}

/* The numbers of a client's token requests, which the test answers later or never. */
struct asked {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t numbers[32];
    int count;
};

static void note(void *context, uint64_t number, const char *request, size_t length) {
    struct asked *asked = context;
    (void)request;
    (void)length;
    pthread_mutex_lock(&asked->lock);
    CHECK(asked->count < 32, "more token requests than expected");
    asked->numbers[asked->count++] = number;
    pthread_cond_broadcast(&asked->changed);
    pthread_mutex_unlock(&asked->lock);
}

/* Waits for the token request with this index. Returns its number. */
static uint64_t await_question(struct asked *asked, int index) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&asked->lock);
    while (asked->count <= index)
        CHECK(pthread_cond_timedwait(&asked->changed, &asked->lock, &end) == 0, "no token request within a minute");
    uint64_t number = asked->numbers[index];
    pthread_mutex_unlock(&asked->lock);
    return number;
}

/* After an unanswered token request the client sends another one, and ignores a late answer to the first. */
static void unanswered(char **given) {
    struct asked asked = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    char *configuration = format(
        "{\"endpoint\":\"%s\",\"writeKey\":\"%s\",\"dataDirectory\":\"%s/unanswered\",\"logLevel\":\"none\","
        "\"tokenProviderTimeout\":1,\"networkRetry\":{\"baseDelay\":1,\"maximumDelay\":1},"
        "\"authenticationRetry\":{\"baseDelay\":1,\"maximumDelay\":1}}",
        given[1], given[2], given[0]);
    countersign_client *client = countersign_open_signed_user(configuration, NUL, note, NULL, &asked, NULL, NULL);
    CHECK(client, "no client");
    WANT(client, "changeUser", "{\"userId\":\"ada\"}", "{\"value\":null}");
    WANT(client, "track", "{\"event\":\"c unanswered\"}", "{\"value\":\"");
    free(call(client, "flush", NULL));
    uint64_t first = await_question(&asked, 0), second = await_question(&asked, 1);
    CHECK(countersign_answer(client, first, "not.a.token", NUL) == COUNTERSIGN_OK, "a late answer");
    CHECK(countersign_answer(client, second, given[5], NUL) == COUNTERSIGN_OK, "an answer");
    WANT(client, "flush", NULL, "\"queued\":0");
    finish(client);
    free(configuration);
}

/* A close does not wait for the answer to a token request. */
static void closed_while_asking(char **given) {
    char *configuration = format(
        "{\"projectToken\":\"%s\",\"authorizationToken\":\"%s\",\"baseUrl\":\"%s\",\"advancedAuthEnabled\":true,\"flushMode\":"
        "\"MANUAL\",\"dataDirectory\":\"%s/asking\",\"authorizationProviderTimeout\":3600,\"logLevel\":\"none\"}",
        given[3], given[4], given[1], given[0]);
    for (int round = 0; round < 10; round++) {
        struct asked asked = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        countersign_client *client = countersign_open_bloomreach(configuration, NUL, note, NULL, &asked, NULL, NULL);
        CHECK(client, "no client");
        struct box fetch;
        prepare(&fetch);
        countersign_call(client, "fetchAppInbox", NUL, NULL, 0, put, &fetch);
        finish(client);
        CHECK(fetch.text && strstr(fetch.text, "\"error\""), fetch.text);
        free(take(&fetch));
    }
    free(configuration);
}

static void told(void *context, const char *json, size_t length) {
    (void)length;
    if (strncmp(json, "{\"value\":\"", 10) == 0) printf("%ld\n", (long)(intptr_t)context);
    fflush(stdout);
}

/* Opens a client of this mode. In the mode signed_user the user is ada. */
static countersign_client *begin(const char *mode, const char *configuration) {
    char *error = NULL;
    countersign_client *client =
        !strcmp(mode, "bloomreach") ? countersign_open_bloomreach(configuration, NUL, NULL, NULL, NULL, &error, NULL)
        : !strcmp(mode, "access_token") ? countersign_open_access_token(configuration, NUL, NULL, NULL, &error, NULL)
        : countersign_open_signed_user(configuration, NUL, NULL, NULL, NULL, &error, NULL);
    CHECK(client, error);
    if (!strcmp(mode, "signed_user")) {
        char *user = format("{\"userId\":\"ada\",\"token\":\"%s\"}", getenv("STAND_ADA"));
        free(call(client, "changeUser", user));
        free(user);
    }
    return client;
}

/* Records events and prints the number of each stored one, until the process is killed. */
static void record(const char *mode, const char *configuration, const char *round) {
    countersign_client *client = begin(mode, configuration);
    for (long number = 0;; number++) {
        char *name = format("kill %s %ld", round, number);
        if (!strcmp(mode, "bloomreach")) {
            char *event = format("{\"eventType\":\"%s\"}", name);
            free(call(client, "trackEvent", event));
            free(event);
            /* trackEvent returns when the event is in memory. Five events are on disk once `unsaved` is 0. */
            if (number % 5 == 4) {
                char *snapshot = call(client, "snapshot", NULL);
                for (long one = number - 4; one <= number && strstr(snapshot, "\"unsaved\":0,"); one++) printf("%ld\n", one);
                fflush(stdout);
                free(snapshot);
            }
        } else if (!strcmp(mode, "access_token")) {
            char *place = format("{\"coords\":{\"latitude\":46.05,\"longitude\":14.51},\"uuid\":\"%s\"}", name);
            countersign_call(client, "insert", NUL, place, NUL, told, (void *)(intptr_t)number);
            free(place);
        } else {
            char *event = format("{\"event\":\"%s\"}", name);
            countersign_call(client, "track", NUL, event, NUL, told, (void *)(intptr_t)number);
            free(event);
        }
        free(name);
        if (number % 20 == 19) free(call(client, "snapshot", NULL));
    }
}

static void send_rest(const char *mode, const char *configuration) {
    countersign_client *client = begin(mode, configuration);
    free(call(client, !strcmp(mode, "access_token") ? "sync" : "flush", NULL));
    WANT(client, "snapshot", NULL, "\"queued\":0,");
    finish(client);
}

int main(int count, char **arguments) {
    if (count == 5 && !strcmp(arguments[1], "record")) record(arguments[2], arguments[3], arguments[4]);
    if (count == 4 && !strcmp(arguments[1], "send")) return send_rest(arguments[2], arguments[3]), 0;
    if (count != 10) return 2;
    signed_user(arguments + 1);
    access_token(arguments + 1);
    bloomreach(arguments + 1);
    kept_texts(arguments + 1);
    unanswered(arguments + 1);
    closed_while_asking(arguments + 1);
    printf("%s\n", countersign_version());
    return 0;
}
