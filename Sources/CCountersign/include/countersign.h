/*
 * libcountersign: the SDK for other languages. Link the dynamic library CountersignC.
 *
 * All functions may be called from any thread and return at once. All texts are UTF-8 and end with a zero byte; JSON in and
 * out. A callback runs on a thread of the SDK and must return soon; its texts are gone when it returns.
 */
#ifndef COUNTERSIGN_H
#define COUNTERSIGN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A client. It lives until countersign_close has called back. */
typedef struct countersign_client countersign_client;

/*
 * Takes the result of a call, once: {"value": ...} or {"error": {"code", "detail", "status", "auth_code", "retryable",
 * "retry_after"}}. Members of an error that are not known are left out.
 */
typedef void (*countersign_result)(void *context, const char *json);

/*
 * Takes events: {"event": "log", "level": "debug" | "info" | "warning", "message", "values"} and
 * {"event": "delivery_failure", "error": {...}}.
 */
typedef void (*countersign_event)(void *context, const char *json);

/*
 * A customer token is needed for a request that is about to be sent. Answer with countersign_answer, now or later, from any
 * thread, with the same number. Numbers are never used twice. Not called again before the earlier number was answered or its
 * time was up.
 */
typedef void (*countersign_provider)(void *context, uint64_t number);

/*
 * Makes a client.
 *
 * configuration: an object with the keys of the vendor's Flutter SDK: projectToken, authorizationToken, baseUrl,
 *   projectMapping, defaultProperties, allowDefaultCustomerProperties, advancedAuthEnabled, applicationId; and with
 *   flushMode (IMMEDIATE, MANUAL, AUTOMATIC, PERIOD), flushPeriod (seconds), platform (ios, android), dataDirectory,
 *   instanceName, authorizationProviderTimeout (seconds), logLevel (debug, info, warning; default warning).
 * provider: asked for customer tokens when advancedAuthEnabled is true; may be null otherwise.
 * event: may be null.
 * context: passed to provider and event; must live as long as the client.
 * error: if not null and there is no client, gets a text that says why; free it with countersign_free.
 *
 * Returns null if the configuration cannot work.
 */
countersign_client *countersign_open(
    const char *configuration, countersign_provider provider, countersign_event event, void *context, char **error);

/* Answers the provider's call. token: the token, or null for none. A late or second answer is ignored. */
void countersign_answer(countersign_client *client, uint64_t number, const char *token);

/*
 * Does something and calls back once. arguments: a JSON object, or null for an empty one.
 *
 *   identifyCustomer     {"customerIds": {...}, "properties": {...}, "timestamp": seconds}
 *   trackCustomer        {"properties": {...}, "timestamp": seconds}
 *   trackEvent           {"eventType", "properties": {...}, "timestamp": seconds}
 *   trackCampaignClick   {"url", "timestamp": seconds}
 *   anonymize            {}
 *   startSession         {}                 also tries again what was paused after too many refusals
 *   endSession           {}
 *   trackPushToken       {"token"}          null when the person has taken the permission back
 *   customerIds          {}                 value: an object
 *   fetchAttributes      {"attributes": [{"type": "property", "property"} | {"type": "id", "id"}]}
 *                                           value: [{"success", "error", "value"}]
 *   fetchRecommendations {"id", "fillWithRandom", "size", "items", "noTrack", "catalogAttributesWhitelist"}
 *   fetchConsents        {}                 value: a list
 *   fetchInAppMessages   {}                 value: a list
 *   fetchAppInbox        {}                 value: a list, the newest first
 *   markAppInboxAsRead   {"messageId"}
 *   sendSelfCheck        {"pushToken"}
 *   flush                {}                 value: {"delivered", "queued", "ending"}
 *   snapshot             {}                 value: {"queued", "sent", "quarantined", ...}
 *
 * What is tracked calls back as soon as it is recorded; it is delivered later.
 */
void countersign_call(
    countersign_client *client, const char *method, const char *arguments, countersign_result result, void *context);

/* Stores what is in memory, ends all work, frees the client and calls back; done may be null. */
void countersign_close(countersign_client *client, countersign_result done, void *context);

/* Frees a text that a function has returned. */
void countersign_free(char *text);

/* The version, such as 1.2.3. The text is not to be freed. */
const char *countersign_version(void);

#ifdef __cplusplus
}
#endif

#endif
