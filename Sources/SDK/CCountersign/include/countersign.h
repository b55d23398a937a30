/*
 * libcountersign: the SDK for other languages. Link with `pkg-config --cflags --libs countersign`.
 *
 * A client records on disk and delivers later. What it can do are methods with a name, a JSON object as arguments and a JSON value
 * as result: the three lists of them are below, one for each mode.
 *
 * Threads. Every function may be called from any thread and returns at once. A callback never runs on the thread that calls a
 * function, but on a thread of the library, one at a time for each client; it may run before the function has returned. It must
 * return soon, and must not wait for another callback of the same client. It may call any function.
 *
 * Texts are UTF-8. One that is passed in has a length in bytes, or COUNTERSIGN_NUL_TERMINATED for one that ends with a zero
 * byte; it is copied before the function returns. One that a callback gets has its length and ends with a zero byte, and is gone
 * when the callback returns; with the member "keepsTexts": true of any configuration, each text that the client's callbacks get
 * stays until it is freed with countersign_free. That is for languages whose callbacks run later than they are called, such as Dart.
 *
 * Values of properties, traits and records are JSON. An integer of up to 64 bits with sign keeps all its digits; a longer one becomes
 * text with all its digits. An unpaired surrogate becomes U+FFFD. An array or object more than 60 levels deep becomes null.
 * docs/value-types.md lists the types of the clients for other languages.
 *
 * Clients. A handle is a number in the shape of a pointer: never dereference it. After countersign_close it names nothing, and a
 * function that gets it returns COUNTERSIGN_CLOSED and does nothing.
 *
 * Errors are JSON objects: {"code", "detail", "status", "authCode", "retryable", "retryAfter", "projectToken"}. `code` is a stable
 * word, `detail` safe to log; members that are not known are left out. No error and no log line has a token, a key or an event in it.
 *
 * fork. The threads of the library do not exist in a child process. There every function returns COUNTERSIGN_FORKED, or null and
 * the code `forked`, when the parent had a client before the fork, until the child calls exec. A child whose parent never had one
 * may open clients as usual. Two processes may use the same queue at the same time; one of them sends.
 *
 * A process that ends without countersign_close loses only what was not on disk yet.
 */
#ifndef COUNTERSIGN_H
#define COUNTERSIGN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In place of a length: the text ends with a zero byte. */
#define COUNTERSIGN_NUL_TERMINATED ((size_t)-1)

/* A client. */
typedef struct countersign_client countersign_client;

/* What a function says at once. */
typedef int32_t countersign_status;
/* Done, or under way: the callback will be called. */
#define COUNTERSIGN_OK 0
/* There is no such client, or it was closed. No callback is called. */
#define COUNTERSIGN_CLOSED 1
/* The process was forked after a client was opened. No callback is called. */
#define COUNTERSIGN_FORKED 2
/* A text is missing or is not UTF-8. No callback is called. */
#define COUNTERSIGN_INVALID 3

/*
 * Takes the result of one call, once: {"value": ...} or {"error": {...}}.
 *
 * context: as it was passed to the call.
 */
typedef void (*countersign_result)(void *context, const char *json, size_t length);

/*
 * Takes what happens while nothing was asked:
 *
 *   {"event": "log", "level": "debug" | "info" | "warning", "message", "values": {...}}
 *   {"event": "authentication_failure", "code", "reason", "userId", "token", "optional", "origin", "occurrences", "clockSkew",
 *     "requestTime"}       signed user: a token was refused, or there is none. `token` is a credential: never log it.
 *   {"event": "authorization", "success", "status", "response", "error"}
 *                          access token: each answer to a refresh. `response` may hold tokens: never log it.
 *   {"event": "upload", "success", "status", "error"}                    access token: each attempt to upload
 *   {"event": "delivery_failure", "error": {...}}                         Bloomreach: the server refuses the API key
 *
 * An authentication failure with code 0 is not the server's; `reason` says what it is. Times are seconds since 1970.
 *
 * context: as it was passed when the client was opened.
 */
typedef void (*countersign_event)(void *context, const char *json, size_t length);

/*
 * A token is needed. Answer with countersign_answer and the same number, now or later, from any thread. Numbers are never
 * used twice. An answer that takes longer than the provider's time-out counts as none: that question is over, and where a token
 * is still needed, another one is asked later. After countersign_close no answer is waited for.
 *
 * request: for a signed user {"userId", "reason": "missing" | "expired" | "rejected", "code"}; `code` is what the server
 *   said and only there with `rejected`. For Bloomreach an empty object: the token of the present customer.
 * context: as it was passed when the client was opened.
 */
typedef void (*countersign_provider)(void *context, uint64_t number, const char *request, size_t length);

/*
 * Opens a client whose events carry their user's signed token. They go to a gateway of Countersign.
 *
 * configuration: an object. Required: endpoint (the gateway's URL) and writeKey. Optional:
 *   instanceName ("default"), dataDirectory (a folder of the user's by default), logLevel ("debug", "info", "warning", "none";
 *   "warning"), requestTimeout (30 seconds), tokenProviderTimeout (30 seconds), sessionTimeout (10 seconds), batchEvents (100),
 *   batchBytes (400,000);
 *   flushPolicy: "automatic", "manual" or {"eventCount", "interval" (seconds), "onBackground"};
 *   limits: {"maximumEvents", "maximumBytes", "maximumAge" (seconds), "maximumEventBytes", "maximumQuarantinedEvents",
 *     "maximumUnsavedEvents", "maximumUnsavedBytes"};
 *   networkRetry, authenticationRetry: {"baseDelay", "maximumDelay", "maximumServerDelay" (seconds), "maximumFailures"}.
 *   Any other member is an error. What the members mean is in the documentation of CountersignConfiguration.
 * provider: asked for tokens; null if the app hands them over on its own.
 * event: null if nobody listens: then the log goes to the standard error stream.
 * context: passed to both; must live until the client is closed.
 * error, error_length: if error is not null and there is no client, it gets an error as JSON, to be freed with countersign_free.
 *   error_length may be null.
 *
 * Returns null if the configuration cannot work (code `invalid_configuration`).
 *
 * Methods. Those that record have a result when the event is on disk, so that it survives a crash and a power failure:
 *
 *   identify     {"userId", "token", "traits": {...}}   says who the user is. value: the event's id, or null if there was nothing
 *                                                        to record; token and traits may be left out
 *   changeUser   {"userId", "token"}                    the same without an event
 *   setToken     {"token"}                              a new token of the present user; what waits for one is sent at once
 *   userId       {}                                     value: the present user, or null
 *   track        {"event", "kind", "properties": {...}} value: the event's id. kind: track (default), page, screen, group, alias
 *   logOut       {}                                     sends what is left under the user's token and forgets it; what could not
 *                                                        be sent waits for another one. value: as flush
 *   flush        {}                                     sends what can be sent. value: {"delivered", "queued", "ending",
 *                                                        "batches": [{"userId", "events", "delivered", "outcome", "code"}]}.
 *                                                        "ending" is drained when everything was sent, parked when events wait
 *                                                        for a token, interrupted when the server or the network failed
 *   snapshot     {}                                     value: where every event is ("queued", "sent", "quarantined", ...), and
 *                                                        who waits for a token ("parked")
 *   startSession, endSession, enterBackground, enterForeground  {}
 *   quarantinedEvents          {}   value: [{"messageId", "userId", "code", "reason", "date", "body"}]
 *   requeueQuarantinedEvents, deleteQuarantinedEvents  {}       value: how many
 *   wipe         {}                                     removes events, tokens, the user and the device's id
 *   optOut, optIn {}                                    records nothing, also in later runs; records again. Wait for the result of
 *                                                        these three before the next call
 */
countersign_client *countersign_open_signed_user(
    const char *configuration, size_t configuration_length, countersign_provider provider, countersign_event event, void *context,
    char **error, size_t *error_length);

/*
 * Opens a client for locations that are sent under an access token which refreshes itself, to any server.
 *
 * configuration: an object, every member of which is optional:
 *   http: {"url", "method", "headers", "params", "rootProperty", "timeout", "autoSync", "autoSyncThreshold", "batchSync",
 *     "maxBatchSize", "acceptsPages"};
 *   authorization: {"strategy" ("JWT", "SAS"), "accessToken", "expires", "refreshUrl", "refreshToken", "refreshPayload",
 *     "refreshHeaders", "refreshStatuses", "expiresUnit", "responseMapping"};
 *   persistence: {"locationsOrderDirection", "maxDaysToPersist", "maxRecordsToPersist", "extras", "locationTemplate",
 *     "timestampFormat"};
 *   keepsTokens (go on with the tokens of the last run), instanceName ("locations"), dataDirectory, logLevel, networkRetry.
 *   Any other member is an error. What the members mean is in the documentation of LocationConfiguration.
 * event, context, error, error_length: as for countersign_open_signed_user.
 *
 * Returns null if the configuration cannot work.
 *
 * Methods:
 *
 *   insert       {"coords": {"latitude", "longitude", ...}, "timestamp", "uuid", ...}   a record. value: its uuid, when it is on
 *                                                        disk. timestamp: text with an offset, or milliseconds since 1970; any
 *                                                        other is sent as it is, with a warning in the log
 *   configure    {"http", "authorization", "persistence"}  changes the members that are given; those within them too
 *   sync         {}                                     sends what waits. value: the records that the server has taken
 *   count, records, removeAll  {}                       of those that wait
 *   remove       {"uuid"}                               value: false if there is none
 *   authorizationState  {}                              value: {"kind", "reason", "retryIn"}
 *   accessToken  {"replacing"}                          value: a token for the app's own requests; replacing: one that was refused
 *   forgetTokens {}
 *   snapshot, quarantinedEvents, requeueQuarantinedEvents, deleteQuarantinedEvents   as for a signed user
 */
countersign_client *countersign_open_access_token(
    const char *configuration, size_t configuration_length, countersign_event event, void *context, char **error,
    size_t *error_length);

/*
 * Opens a client for a project of Bloomreach Engagement, with API key and customer tokens.
 *
 * configuration: an object with the keys of the vendor's Flutter SDK: projectToken, authorizationToken, baseUrl, projectMapping,
 *   defaultProperties, allowDefaultCustomerProperties, advancedAuthEnabled, applicationId; and with flushMode (IMMEDIATE, MANUAL,
 *   AUTOMATIC, PERIOD), flushPeriod (seconds), platform (ios, android), dataDirectory, instanceName,
 *   authorizationProviderTimeout (seconds), logLevel (debug, info, warning, none). Other members are logged and ignored.
 * provider: asked for customer tokens, once at a time, when advancedAuthEnabled is true; may be null otherwise.
 * event, context, error, error_length: as for countersign_open_signed_user.
 *
 * Returns null if the configuration cannot work.
 *
 * Methods. Those that record have a result as soon as the event is in memory; a flush or a close brings it to disk at the latest:
 *
 *   identifyCustomer     {"customerIds": {...}, "properties": {...}, "timestamp": seconds}
 *   trackCustomer        {"properties": {...}, "timestamp": seconds}
 *   trackEvent           {"eventType", "properties": {...}, "timestamp": seconds}
 *   trackCampaignClick   {"url", "timestamp": seconds}
 *   anonymize            {"projectToken", "authorizationToken", "baseUrl", "projectMapping"}   another project from now on, as in
 *                                           the configuration; an empty object to stay
 *   startSession         {}                 also tries again what was paused after too many refusals
 *   endSession           {}
 *   trackPushToken       {"token"}          null when the person has taken the permission back
 *   customerIds          {}                 value: an object
 *   fetchAttributes      {"attributes": [{"type": "property", "property"} | {"type": "id", "id"}]}
 *                                           value: [{"success", "error", "value"}]
 *   fetchConsents        {}                 value: a list
 *   fetchInAppMessages   {}                 value: a list
 *   fetchAppInbox        {}                 value: a list, newest first
 *   markAppInboxAsRead   {"messageId"}
 *   sendSelfCheck        {"pushToken"}
 *   wipe                 {}                 and nothing is recorded afterwards
 *   flush, snapshot, quarantinedEvents, requeueQuarantinedEvents, deleteQuarantinedEvents   as for a signed user
 */
countersign_client *countersign_open_bloomreach(
    const char *configuration, size_t configuration_length, countersign_provider provider, countersign_event event, void *context,
    char **error, size_t *error_length);

/*
 * Answers the provider's call. token: the token, or null for none. A late or second answer is ignored.
 *
 * Returns COUNTERSIGN_OK also for an answer that is ignored.
 */
countersign_status countersign_answer(
    countersign_client *client, uint64_t number, const char *token, size_t token_length);

/*
 * Calls a method. Calls that record or change the user keep the order in which they are made.
 *
 * method: one of the client's mode.
 * arguments: a JSON object; null for an empty one.
 * result: called once if the function returns COUNTERSIGN_OK; may be null. A method that does not exist and arguments that do not
 *   fit are errors with the code `invalid_argument`.
 * context: passed to result.
 */
countersign_status countersign_call(
    countersign_client *client, const char *method, size_t method_length, const char *arguments, size_t arguments_length,
    countersign_result result, void *context);

/*
 * Stores what is in memory, ends all work, waits for the results of all calls, and calls back: then no callback of this client is
 * called any more. What was not sent is sent by the next client with the same queue. From now on the handle names nothing: a call
 * that another thread makes meanwhile has its result before that, or returns COUNTERSIGN_CLOSED.
 *
 * done: gets {"value": null}; may be null.
 */
countersign_status countersign_close(countersign_client *client, countersign_result done, void *context);

/* Frees a text that a function has given out, or a callback with keepsTexts; null is allowed. */
void countersign_free(char *text);

/* The version, such as 1.2.3. The text lives as long as the library; it ends with a zero byte. */
const char *countersign_version(void);

#ifdef __cplusplus
}
#endif

#endif
