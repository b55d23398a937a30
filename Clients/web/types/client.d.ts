/**
 * @typedef {import('./types.js').Configuration} Configuration
 * @typedef {import('./types.js').Receipt} Receipt
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').NewRow} NewRow
 */
export const version: "0.1.0";
/** `code` is stable: `invalid_configuration`, `invalid_event`, `event_too_large` or `storage_failed`. */
export class CountersignError extends Error {
    /** @param {string} code @param {string} message */
    constructor(code: string, message: string);
    code: string;
}
/**
 * Records the actions of a page's users, and delivers each event once to a gateway, under its user's token.
 *
 * Tabs of one origin and write key share a queue, and one tab sends. Events on disk survive reloads and crashes until
 * a server has accepted them or a limit evicts them.
 */
export class Countersign {
    /**
     * Opens the queue in the background. Throws `CountersignError` with `invalid_configuration`.
     *
     * @param {Configuration} configuration
     * @param {import('./types.js').Platform} [platform] For tests.
     */
    constructor(configuration: Configuration, platform?: import("./types.js").Platform | undefined);
    /** The current user, as identified on this page or an earlier one; null without a user or while the queue opens. */
    get userId(): string | null;
    /**
     * Sets the current user, on later pages too, until `logOut()`, `wipe()` or another call.
     *
     * Earlier events keep their user. An event is recorded if the user changes or if there are traits.
     *
     * @param {string} userId The id in the app's own systems: not empty, and byte for byte the `sub` of the token.
     * @param {string | null} [token] The token from the app's backend; null if there is a token provider.
     * @param {Record<string, unknown>} [traits] The user's attributes.
     * @returns {Promise<Receipt | null>} Where the event is stored; null without an event. Rejects as
     *   `track` does; then the user does not change.
     */
    identify(userId: string, token?: string | null | undefined, traits?: Record<string, unknown> | undefined): Promise<Receipt | null>;
    /**
     * As `identify`, without an event.
     * @param {string} userId @param {string | null} [token] @returns {Promise<void>}
     */
    changeUser(userId: string, token?: string | null | undefined): Promise<void>;
    /**
     * Sets a new token of the current user. Events that wait for a token are sent at once. Ignored without a user.
     * @param {string} token Exactly as the backend made it. @returns {Promise<void>}
     */
    setToken(token: string): Promise<void>;
    /**
     * Signs the user out: sends the queued events under the user's token, then deletes the token in all tabs.
     * Events that cannot be sent now wait for another token, from the app or its provider, on later pages too. Without
     * a token provider, the events of a user who never had a token are sent later, without a token.
     */
    logOut(): Promise<import("./types.js").FlushResult>;
    /**
     * Records an action of the user. Resolves once the event is stored or dropped.
     *
     * Rejects with `CountersignError` for an event that can never be sent: `invalid_event`, `event_too_large`.
     *
     * @param {string} event The event's name, such as `Order Completed`.
     * @param {Record<string, unknown>} [properties] docs/reference/event-format.md lists how values are converted.
     * @returns {Promise<Receipt>}
     */
    track(event: string, properties?: Record<string, unknown> | undefined): Promise<Receipt>;
    /**
     * Sends the events of all tabs that can be sent now. Ends waits after failures and resumes paused users.
     * @returns {Promise<import('./types.js').FlushResult>}
     */
    flush(): Promise<import('./types.js').FlushResult>;
    /** Begins a new session, and retries events that are paused after too many rejected tokens. */
    startSession(): void;
    /**
     * Calls back in every tab for each authentication failure. A repeated failure of the same user, token and code
     * is reported again after five minutes or in a new session. The latest unresolved failure of each user is
     * reported at once. Returns a function that unsubscribes.
     * @param {(failure: import('./types.js').AuthenticationFailure) => void} handler
     */
    onAuthenticationFailure(handler: (failure: import('./types.js').AuthenticationFailure) => void): () => undefined;
    /**
     * Returns the state of the queue and the reasons for waiting.
     * @returns {Promise<import('./types.js').Snapshot>}
     */
    snapshot(): Promise<import('./types.js').Snapshot>;
    /** Events in quarantine, those on disk first. Rejects with `storage_failed`. */
    quarantinedEvents(): Promise<import("./types.js").QuarantinedEvent[]>;
    /**
     * Removes all events, all tokens, the user and the id of this browser, in all tabs. It does not cancel a
     * request in flight. Rejects with `storage_failed` if the storage cannot be written; in that case call it again.
     */
    wipe(): Promise<void>;
    /**
     * Stores pending events and ends all work. The next client with this queue sends the remaining events.
     *
     * Later events are `dropped`, and a later flush or log-out ends with `closed`. `wipe()` and `snapshot()` work.
     */
    close(): Promise<void>;
    #private;
}
export type Configuration = import('./types.js').Configuration;
export type Receipt = import('./types.js').Receipt;
export type Row = import('./types.js').Row;
export type NewRow = import('./types.js').NewRow;
