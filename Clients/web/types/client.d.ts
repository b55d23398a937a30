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
 * Records what users of a page do, and delivers it to a gateway: each event once, and under its user's token.
 *
 * All tabs of an origin share one queue, and one of them sends. What the disk has is not lost, whatever happens to the page
 * or the server, until a server has taken it or a limit pushes it out.
 */
export class Countersign {
    /**
     * Opens the queue in the background. Throws `CountersignError` with `invalid_configuration`.
     *
     * @param {Configuration} configuration
     * @param {import('./types.js').Platform} [platform] For tests.
     */
    constructor(configuration: Configuration, platform?: import("./types.js").Platform | undefined);
    /** The user whom events are recorded for, from an earlier page if nobody was identified in this one; null if there is none. */
    get userId(): string | null;
    /**
     * Says who the user is from now on, over later pages too, until `logOut()`, `wipe()` or another call.
     *
     * What was recorded before stays with the user it was recorded for. An event is recorded when the user is another one or
     * when there are traits.
     *
     * @param {string} userId The id in the app's own systems: not empty, and the same as `sub` of the token, byte for byte.
     * @param {string | null} [token] What the app's backend signed for this user; null if there is a token provider.
     * @param {Record<string, unknown>} [traits] What is known of the user.
     * @returns {Promise<Receipt | null>} Where the event is; null if there is none. Rejects as `track` does; then the user
     *   stays.
     */
    identify(userId: string, token?: string | null | undefined, traits?: Record<string, unknown> | undefined): Promise<Receipt | null>;
    /**
     * As `identify`, without an event.
     * @param {string} userId @param {string | null} [token] @returns {Promise<void>}
     */
    changeUser(userId: string, token?: string | null | undefined): Promise<void>;
    /**
     * Hands over a new token of the current user; what waits for one is sent at once.
     * @param {string} token Exactly as the backend made it. @returns {Promise<void>}
     */
    setToken(token: string): Promise<void>;
    /**
     * Ends the user's time with the app: sends what is left under the user's token, and then forgets that token, in all tabs.
     * What cannot be sent now waits until the same user comes back with a token, on later pages too. Of a user who never had
     * one, in an app without a token provider, it is sent without.
     */
    logOut(): Promise<import("./types.js").FlushResult>;
    /**
     * Records that the user did something. Resolves when it is stored, and says where.
     *
     * Rejects with `CountersignError` for an event that can never be sent: `invalid_event`, `event_too_large`.
     *
     * @param {string} event What it was, such as `Order Completed`.
     * @param {Record<string, unknown>} [properties] More about it; docs/value-types.md lists how values are converted.
     * @returns {Promise<Receipt>}
     */
    track(event: string, properties?: Record<string, unknown> | undefined): Promise<Receipt>;
    /**
     * Sends everything that can be sent now, whichever tab does it. It ends waits after failures and resumes what was paused.
     * @returns {Promise<import('./types.js').FlushResult>}
     */
    flush(): Promise<import('./types.js').FlushResult>;
    /** Begins a new session: what was paused after too many refused tokens is tried again. */
    startSession(): void;
    /**
     * Calls back for each authentication failure, in every tab: the first time at once, then at most once in five minutes and in
     * each session for the same user, token and code. The last failure of each user that still stands is reported at once.
     * Returns a function that unsubscribes.
     * @param {(failure: import('./types.js').AuthenticationFailure) => void} handler
     */
    onAuthenticationFailure(handler: (failure: import('./types.js').AuthenticationFailure) => void): () => undefined;
    /**
     * Where every event is, and what the client is waiting for.
     * @returns {Promise<import('./types.js').Snapshot>}
     */
    snapshot(): Promise<import('./types.js').Snapshot>;
    /** The events that a server will never take as they are, oldest first. Rejects with `storage_failed`. */
    quarantinedEvents(): Promise<import("./types.js").QuarantinedEvent[]>;
    /**
     * Removes all events, all tokens, the user and the id of this browser, in all tabs. A request that is under way cannot be
     * taken back. Rejects with `storage_failed` when the storage cannot be written now; call it again then.
     */
    wipe(): Promise<void>;
    /**
     * Stores pending events and ends all work. The next client with this queue sends the rest.
     *
     * Later calls do nothing and settle: with `dropped`, `closed` or nothing. `wipe()` and `snapshot()` go on to work.
     */
    close(): Promise<void>;
    #private;
}
export type Configuration = import('./types.js').Configuration;
export type Receipt = import('./types.js').Receipt;
export type Row = import('./types.js').Row;
export type NewRow = import('./types.js').NewRow;
