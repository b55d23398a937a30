/**
 * @typedef {object} SdkAuthenticationError
 * @property {number} errorCode 10 to 28 as in Braze's table; 30 and above are Countersign's own.
 * @property {string} reason The name of the code, such as `EXPIRED`, or a word such as `token_malformed`.
 * @property {string | null} userId Compare it with the current user before getting a new signature.
 * @property {string} signature The rejected signature; empty if missing. A credential: never log it.
 * @property {boolean} optional True if the server accepted the events anyway, since the app requires no signatures.
 */
/**
 * @param {string} apiKey The app's write key.
 * @param {{ baseUrl: string, enableSdkAuthentication?: boolean, appVersion?: string }} options
 *   `baseUrl`: the gateway's host or URL. `enableSdkAuthentication`: whether signatures are sent; false by default.
 * @param {import('./types.js').Platform} [platform] For tests.
 * @returns {boolean} False if the configuration is invalid; then nothing is recorded.
 */
export function initialize(apiKey: string, { baseUrl, enableSdkAuthentication, appVersion }: {
    baseUrl: string;
    enableSdkAuthentication?: boolean;
    appVersion?: string;
}, platform?: import("./types.js").Platform | undefined): boolean;
/**
 * Sets the current user.
 * @param {string} userId @param {string} [signature] The token that the app's backend signed.
 */
export function changeUser(userId: string, signature?: string | undefined): void;
/**
 * Replaces the current user's signature. Events that wait for a signature are sent at once.
 * @param {string} signature
 */
export function setSdkAuthenticationSignature(signature: string): void;
/**
 * Subscribes to rejected and missing signatures. Repetitions are reported after five minutes or in a new session.
 * @param {(error: SdkAuthenticationError) => void} subscriber
 * @returns {string | undefined} The id for `removeSubscription`; undefined before `initialize`.
 */
export function subscribeToSdkAuthenticationFailures(subscriber: (error: SdkAuthenticationError) => void): string | undefined;
/** @param {string} id */
export function removeSubscription(id: string): void;
/** @param {string} name @param {Record<string, unknown>} [properties] @returns {boolean} False for an ignored call. */
export function logCustomEvent(name: string, properties?: Record<string, unknown> | undefined): boolean;
/**
 * Sends all queued events now.
 * @param {(isComplete: boolean) => void} [callback] Receives false if events remain, or before `initialize`.
 */
export function requestImmediateDataFlush(callback?: ((isComplete: boolean) => void) | undefined): void;
/** Closes the client. Call `initialize` to start again. */
export function destroy(): Promise<void>;
export type SdkAuthenticationError = {
    /**
     * 10 to 28 as in Braze's table; 30 and above are Countersign's own.
     */
    errorCode: number;
    /**
     * The name of the code, such as `EXPIRED`, or a word such as `token_malformed`.
     */
    reason: string;
    /**
     * Compare it with the current user before getting a new signature.
     */
    userId: string | null;
    /**
     * The rejected signature; empty if missing. A credential: never log it.
     */
    signature: string;
    /**
     * True if the server accepted the events anyway, since the app requires no signatures.
     */
    optional: boolean;
};
