/**
 * The part of Braze's Web SDK that SDK Authentication needs, implemented with a `Countersign` client. Code for Braze's
 * SDK only needs another import. Importing this module has no effect before `initialize` is called.
 */
import { Countersign } from './client.js';

/** @type {Countersign | null} */
let client = null;
let isAuthenticating = false;
/** @type {Map<string, () => void>} */
const subscriptions = new Map();
let lastSubscription = 0;

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
export function initialize(apiKey, { baseUrl, enableSdkAuthentication = false, appVersion }, platform) {
  if (client) return true;
  isAuthenticating = enableSdkAuthentication;
  try {
    // A missing `baseUrl` stays undefined, which the constructor rejects.
    const endpoint = !baseUrl || /^https?:/i.test(baseUrl) ? baseUrl : `https://${baseUrl}`;
    client = new Countersign({ endpoint, writeKey: apiKey, context: { appVersion } }, platform);
  } catch (error) {
    log(error);
  }
  return client !== null;
}

/**
 * Sets the current user.
 * @param {string} userId @param {string} [signature] The token that the app's backend signed.
 */
export function changeUser(userId, signature) {
  client?.changeUser(userId, isAuthenticating ? signature : null).catch(log);
}

/**
 * Replaces the current user's signature. Events that wait for a signature are sent at once.
 * @param {string} signature
 */
export function setSdkAuthenticationSignature(signature) {
  if (isAuthenticating) client?.setToken(signature);
}

/**
 * Subscribes to rejected and missing signatures. Repetitions are reported after five minutes or in a new session.
 * @param {(error: SdkAuthenticationError) => void} subscriber
 * @returns {string | undefined} The id for `removeSubscription`; undefined before `initialize`.
 */
export function subscribeToSdkAuthenticationFailures(subscriber) {
  if (!client) return undefined;
  const id = `${++lastSubscription}`;
  subscriptions.set(id, client.onAuthenticationFailure(({ code, reason, userId, token, isOptional }) =>
    subscriber({ errorCode: code, reason, userId, signature: token ?? '', optional: isOptional })));
  return id;
}

/** @param {string} id */
export function removeSubscription(id) {
  subscriptions.get(id)?.();
  subscriptions.delete(id);
}

/** @param {string} name @param {Record<string, unknown>} [properties] @returns {boolean} False for an ignored call. */
export function logCustomEvent(name, properties) {
  if (!client || typeof name !== 'string' || !name) return false;
  client.track(name, properties).catch(log);
  return true;
}

/**
 * Sends all queued events now.
 * @param {(isComplete: boolean) => void} [callback] Receives false if events remain, or before `initialize`.
 */
export function requestImmediateDataFlush(callback) {
  Promise.resolve(client?.flush()).then((result) => callback?.(result?.isComplete ?? false));
}

/** Closes the client. Call `initialize` to start again. */
export async function destroy() {
  const closing = client;
  client = null;
  await closing?.close();
}

/** @param {unknown} error */
function log(error) {
  console.error(`braze: ${error}`);
}
