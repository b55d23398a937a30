/*
 * libcountersign: the SDK for other languages. Link with `pkg-config --cflags --libs countersign`.
 *
 * A client stores events on disk and delivers them in the background. Its methods have a name, a JSON object
 * as arguments and a JSON value as result. They are listed below for each of the three modes.
 *
 * Threads. Every function may be called from any thread and returns at once. Callbacks run on a thread of the
 * library, never on the calling thread, and one at a time for each client. A callback may run before the
 * function has returned. It must return soon, and must not wait for another callback of the same client. It
 * may call any function.
 *
 * Strings are UTF-8. A string argument has a length in bytes, or COUNTERSIGN_NUL_TERMINATED if it ends with a
 * zero byte. The library copies it before the function returns. A string passed to a callback has a length,
 * ends with a zero byte, and is valid until the callback returns. With "keepsTexts": true in the
 * configuration, strings passed to the client's callbacks stay valid until freed with countersign_free. Use
 * it for languages that run callbacks later than they are called, such as Dart.
 *
 * Values of properties, traits and records are JSON. A signed integer of up to 64 bits keeps all its digits.
 * A longer one becomes a string with all its digits. An unpaired surrogate becomes U+FFFD. An array or object
 * more than 60 levels deep becomes null. docs/reference/event-format.md lists the types of the clients for other
 * languages.
 *
 * Clients. A handle is a number cast to a pointer: never dereference it. After countersign_close the handle
 * is invalid. Functions then return COUNTERSIGN_CLOSED and do nothing.
 *
 * Errors are JSON objects: {"code", "detail", "status", "authCode", "retryable", "retryAfter", "projectToken"}.
 * `code` is a stable identifier and `detail` is safe to log. Members without a value are left out. Errors and log
 * lines never contain a token, a key or an event.
 *
 * fork. The threads of the library do not exist in a child process. If the parent opened a client before the
 * fork, or tried to, functions in the child return COUNTERSIGN_FORKED, or null and the code `forked`, until the child
 * calls exec. Otherwise the child may open clients as usual. Two processes may use the same queue at the same
 * time; then only one process sends.
 *
 * A process that ends without countersign_close loses only data not yet on disk.
 */
#ifndef COUNTERSIGN_H
#define COUNTERSIGN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Used as a length: the string ends with a zero byte. */
#define COUNTERSIGN_NUL_TERMINATED ((size_t)-1)

/* A client. */
typedef struct countersign_client countersign_client;

/* The immediate result of a function. */
typedef int32_t countersign_status;
/* Success, or in progress: the callback will be called. */
#define COUNTERSIGN_OK 0
/* The handle is invalid or the client was closed. No callback is called. */
#define COUNTERSIGN_CLOSED 1
/* The process was forked after its parent opened a client. No callback is called. */
#define COUNTERSIGN_FORKED 2
/* The method is missing, or the method or a token is not UTF-8. No callback is called. */
#define COUNTERSIGN_INVALID 3

/*
 * Receives the result of one call, once: {"value": ...} or {"error": {...}}.
 *
 * context: the pointer passed to the call.
 */
typedef void (*countersign_result)(void *context, const char *json, size_t length);

/*
 * Receives the events of a client:
 *
 *   {"event": "log", "level": "debug" | "info" | "warning", "message", "values": {...}}
 *   {"event": "authentication_failure", "code", "reason", "userId", "token", "optional", "origin", "occurrences",
 *     "clockSkew", "requestTime"}  signed user: a token is missing or was rejected. Never log `token`, a credential.
 *   {"event": "authorization", "success", "status", "response", "error"}
 *                          access token: the result of each refresh. Never log `response`, which may hold tokens.
 *   {"event": "upload", "success", "status", "error"}                    access token: each upload attempt
 *   {"event": "delivery_failure", "error": {...}}                        Bloomreach: the server rejects the API key
 *
 * An authentication failure with another `origin` than "server" was detected on the device; see `reason`. Times
 * are seconds since 1970.
 *
 * context: the pointer passed when the client was opened.
 */
typedef void (*countersign_event)(void *context, const char *json, size_t length);

/*
 * Requests a token. Call countersign_answer with the same number, now or later, from any thread. Numbers are
 * never reused. After the provider's time-out the request ends without a token. If a token is still needed, a
 * new request follows later. countersign_close does not wait for answers.
 *
 * request: for a signed user {"userId", "reason": "missing" | "expired" | "rejected", "code"}; `code` is the
 *   server's error code, only with `rejected`. For Bloomreach an empty object: the current customer's token.
 * context: the pointer passed when the client was opened.
 */
typedef void (*countersign_provider)(void *context, uint64_t number, const char *request, size_t length);

/*
 * Opens a client that sends events with their user's signed token to a Countersign gateway.
 *
 * configuration: an object. Required: endpoint (the gateway's URL) and writeKey. Optional:
 *   instanceName ("default"), dataDirectory (by default in the user's home), logLevel ("debug", "info",
 *   "warning", "none"; "warning"), requestTimeout (30 seconds), tokenProviderTimeout (30 seconds), sessionTimeout
 *   (10 seconds), batchEvents (100), batchBytes (400,000);
 *   flushPolicy: "automatic", "manual" or {"eventCount", "interval" (seconds), "onBackground"};
 *   limits: {"maximumEvents", "maximumBytes", "maximumAge" (seconds), "maximumEventBytes", "maximumQuarantinedEvents",
 *     "maximumUnsavedEvents", "maximumUnsavedBytes"};
 *   networkRetry, authenticationRetry: {"baseDelay", "maximumDelay", "maximumServerDelay" (seconds),
 *     "maximumFailures"};
 *   headers: further header fields of each request; fields that the library sets are an error;
 *   storesTokens (true): false keeps tokens in memory only, and the next run calls the provider again;
 *   context: the facts that each event carries, {"parts": ["app", "os", "device", "locale"] (all), "appVersion",
 *     "appBuild", "library" (the client's name, "countersign-c")}.
 *   Any other member is an error. The members are documented for CountersignConfiguration.
 * provider: called for tokens; null if the app sets tokens itself.
 * event: receives events; null for no events, with the log on standard error (Apple platforms: the system's log).
 * context: passed to both callbacks; must stay valid until countersign_close has called done.
 * error, error_length: on failure, *error receives an error as JSON, to be freed with countersign_free. Both may
 *   be null.
 *
 * Returns null if the configuration is invalid (code `invalid_configuration`).
 *
 * Methods. A recording method's result arrives when the event is on disk, so that the event survives a crash
 * and a power failure:
 *
 *   identify     {"userId", "token", "traits": {...}}   sets the user. value: the event's id, or null if no event
 *                                                       was recorded; token and traits are optional
 *   changeUser   {"userId", "token"}                    as identify, without an event
 *   setToken     {"token"}                              replaces the current user's token and sends waiting events
 *   userId       {}                                     value: the current user, or null
 *   track        {"event", "kind", "properties": {...}} value: the event's id. kind: track (default), page, screen,
 *                                                       group, alias
 *   logOut       {}                                     sends the remaining events with the user's token and removes
 *                                                       the token; unsent events wait for another. value: as flush
 *   flush        {}                                     sends events. value: {"delivered", "queued", "ending",
 *                                                       "batches": [{"userId", "events", "delivered", "outcome",
 *                                                       "code"}]}. "ending" is drained when all events were sent,
 *                                                       parked when some users' events wait, interrupted when the
 *                                                       server or the network failed; FlushResult.Ending has all
 *   snapshot     {}                                     value: the state of events ("queued", "sent", "quarantined",
 *                                                       ...), and the users whose events wait ("parked")
 *   startSession, endSession, enterBackground, enterForeground  {}
 *   quarantinedEvents          {}   value: [{"messageId", "userId", "code", "reason", "date", "body"}]
 *   requeueQuarantinedEvents, deleteQuarantinedEvents  {}       value: the number of events
 *   wipe         {}                                     removes events, tokens, the user and the device's id
 *   optOut, optIn {}                                    stops recording, in later runs too; resumes it. Wait for the
 *                                                       result of wipe, optOut and optIn before the next call
 */
countersign_client *countersign_open_signed_user(
    const char *configuration, size_t configuration_length, countersign_provider provider, countersign_event event, void *context,
    char **error, size_t *error_length);

/*
 * Opens a client that sends locations, with a self-refreshing access token, to any server.
 *
 * configuration: an object with optional members:
 *   http: {"url", "method", "headers", "params", "rootProperty", "timeout", "autoSync", "autoSyncThreshold", "batchSync",
 *     "maxBatchSize", "acceptsPages", "gzip"};
 *   authorization: {"strategy" ("JWT", "SAS"), "accessToken", "expires", "refreshUrl", "refreshToken", "refreshPayload",
 *     "refreshHeaders", "refreshStatuses", "expiresUnit", "responseMapping"};
 *   persistence: {"locationsOrderDirection", "maxDaysToPersist", "maxRecordsToPersist", "extras", "locationTemplate",
 *     "timestampFormat"};
 *   keepsTokens (reuse the tokens of the last run), instanceName ("locations"), dataDirectory, logLevel,
 *   networkRetry, context.
 *   Any other member is an error. The members are documented for LocationConfiguration.
 * event, context, error, error_length: as for countersign_open_signed_user.
 *
 * Returns null if the configuration is invalid.
 *
 * Methods:
 *
 *   insert       {"coords": {"latitude", "longitude", ...}, "timestamp", "uuid", ...}   stores a record. value: its
 *                                                       uuid, when it is on disk. timestamp: text with an offset, or
 *                                                       milliseconds since 1970; other values are sent unchanged,
 *                                                       with a warning in the log
 *   configure    {"http", "authorization", "persistence"}  changes the given members, also nested ones
 *   sync         {}                                     sends waiting records. value: the accepted records
 *   count, records, removeAll  {}                       apply to waiting records; removeAll also empties the quarantine
 *   remove       {"uuid"}                               value: false if not found
 *   authorizationState  {}                              value: {"kind", "reason", "retryIn"}
 *   accessToken  {"replacing"}                          value: a token for the app's own requests; replacing: a
 *                                                       rejected token
 *   forgetTokens {}
 *   snapshot, quarantinedEvents, requeueQuarantinedEvents, deleteQuarantinedEvents   as for a signed user
 */
countersign_client *countersign_open_access_token(
    const char *configuration, size_t configuration_length, countersign_event event, void *context, char **error,
    size_t *error_length);

/*
 * Opens a client for a project of Bloomreach Engagement, with an API key and customer tokens.
 *
 * configuration: an object with the keys of the vendor's Flutter SDK: projectToken, authorizationToken, baseUrl,
 *   projectMapping, defaultProperties, allowDefaultCustomerProperties, advancedAuthEnabled, applicationId,
 *   sessionTimeout, automaticSessionTracking, manualSessionAutoClose, pushTokenTrackingFrequency; and with
 *   flushMode (IMMEDIATE, MANUAL, AUTOMATIC, PERIOD), flushPeriod (seconds), platform (ios, android), dataDirectory,
 *   instanceName, authorizationProviderTimeout (seconds), logLevel (debug, info, warning, none), and headers and
 *   context as for a signed user. Other members are logged and ignored.
 * provider: called for customer tokens, one call at a time, if advancedAuthEnabled is true; may be null otherwise.
 * event, context, error, error_length: as for countersign_open_signed_user.
 *
 * Returns null if the configuration is invalid.
 *
 * Methods. A recording method's result arrives when the event is in memory. The event is on disk after a
 * flush or a close at the latest:
 *
 *   identifyCustomer     {"customerIds": {...}, "properties": {...}, "timestamp": seconds}
 *   trackCustomer        {"properties": {...}, "timestamp": seconds}
 *   trackEvent           {"eventType", "properties": {...}, "timestamp": seconds}
 *   trackCampaignClick   {"url", "timestamp": seconds}
 *   anonymize            {"projectToken", "authorizationToken", "baseUrl", "projectMapping"}   changes the project,
 *                                           as in the configuration; an empty object keeps the project
 *   startSession         {}                 also retries projects paused after too many rejections
 *   endSession           {}
 *   trackPushToken       {"token"}          null when the person has revoked the permission
 *   customerIds          {}                 value: an object
 *   fetchAttributes      {"attributes": [{"type": "property", "property"} | {"type": "id", "id"}]}
 *                                           value: [{"success", "error", "value"}]
 *   fetchConsents        {}                 value: a list
 *   fetchInAppMessages   {}                 value: a list
 *   fetchAppInbox        {}                 value: a list, newest first
 *   markAppInboxAsRead   {"messageId"}
 *   sendSelfCheck        {"pushToken"}
 *   wipe                 {}                 removes all data and stops recording
 *   flush, snapshot, quarantinedEvents, requeueQuarantinedEvents, deleteQuarantinedEvents   as for a signed user
 */
countersign_client *countersign_open_bloomreach(
    const char *configuration, size_t configuration_length, countersign_provider provider, countersign_event event, void *context,
    char **error, size_t *error_length);

/*
 * Completes a token request. token: the token, or null without a token. Ignores a late or repeated answer, and
 * returns COUNTERSIGN_OK for it.
 */
countersign_status countersign_answer(
    countersign_client *client, uint64_t number, const char *token, size_t token_length);

/*
 * Calls a method. Calls that record or change the user take effect in the order of the calls.
 *
 * method: a method of the client's mode.
 * arguments: a JSON object; null for an empty one.
 * result: called once if the function returns COUNTERSIGN_OK; may be null. Unknown methods, and invalid or
 *   unknown arguments, are errors with the code `invalid_argument`, or `invalid_configuration` for members of a
 *   configuration. A method without arguments ignores given ones.
 * context: passed to result.
 */
countersign_status countersign_call(
    countersign_client *client, const char *method, size_t method_length, const char *arguments, size_t arguments_length,
    countersign_result result, void *context);

/*
 * Closes a client in the background: writes events from memory to disk, stops all work and waits for the results of
 * all calls. Then calls done, the client's last callback. The next client with the same queue sends the remaining
 * events. The handle is invalid at once: a concurrent call gets its result before done, or returns COUNTERSIGN_CLOSED.
 *
 * done: receives {"value": null}; may be null.
 */
countersign_status countersign_close(countersign_client *client, countersign_result done, void *context);

/* Frees a string returned by a function, or by a callback with keepsTexts; null is allowed. */
void countersign_free(char *text);

/* The version, such as 1.2.3, with a terminating zero byte. Valid while the library is loaded. */
const char *countersign_version(void);

#ifdef __cplusplus
}
#endif

#endif
