/**
 * Limits of an exponential back-off with full jitter. Waits are in seconds.
 *
 * @typedef {object} RetryPolicy
 * @property {number} base The longest wait after the first failure. It doubles with each further failure.
 * @property {number} maximum The upper limit of all waits, except for `Retry-After`.
 * @property {number} [failures] Failures in a row after which retries pause.
 */

/** Upper bound of a server's `Retry-After`, so that no response can stop a page from sending. */
export const longestServerDelay = 3600;

/**
 * For servers that fail or cannot be reached. Retries never stop.
 * @type {RetryPolicy}
 */
export const network = { base: 2, maximum: 180 };

/**
 * For responses that require a change of settings, or that a proxy may have sent.
 * @type {RetryPolicy}
 */
export const configuration = { base: 5, maximum: 3600 };

/**
 * For rejected tokens.
 * @type {RetryPolicy}
 */
export const authentication = { base: 2, maximum: 300, failures: 50 };

/**
 * Seconds to wait after failure number `failure`, from 1.
 *
 * @param {RetryPolicy} policy
 * @param {number} failure
 * @param {number} fraction A random number from 0 to 1.
 * @param {number | null} [serverDelay] The server's `Retry-After`: a minimum, up to `longestServerDelay`.
 */
export function delay(policy, failure, fraction, serverDelay) {
  const bound = Math.min(policy.maximum, policy.base * 2 ** (Math.min(failure, 32) - 1));
  return Math.max(bound * fraction, Math.min(serverDelay ?? 0, longestServerDelay));
}
