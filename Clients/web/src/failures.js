/** @typedef {import('./types.js').AuthenticationFailure} AuthenticationFailure */

/** The maximum number of distinct failures to track. Beyond it, the least recent one is dropped. */
const capacity = 64;
/** Seconds between two reports of the same failure within a session. */
const interval = 300;

/**
 * Decides when authentication failures are reported to the app: each (user, token, code, reason, `isOptional`) at
 * once. A repeated failure is reported again in each session and after five minutes, since the app may have missed it.
 */
export class Failures {
  /**
   * Ordered by last occurrence, the newest at the end.
   * @type {Map<string, { occurrences: number, reportedAt: number }>}
   */
  #entries = new Map();
  /** The number of failures, repeated ones included. */
  total = 0;

  /**
   * Counts a failure. Returns the failure to report to the app now; null if it was reported recently.
   * @param {AuthenticationFailure} failure @param {number} now
   */
  record(failure, now) {
    this.total += 1;
    const key = JSON.stringify([failure.userId, failure.token, failure.code, failure.reason, failure.isOptional]);
    const entry = this.#entries.get(key) ?? { occurrences: 0, reportedAt: -Infinity };
    entry.occurrences += 1;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > capacity) this.#entries.delete(oldest);
    if (now - entry.reportedAt < interval) return null;
    entry.reportedAt = now;
    return { ...failure, occurrences: entry.occurrences };
  }

  sessionStarted() {
    for (const entry of this.#entries.values()) entry.reportedAt = -Infinity;
  }

  /**
   * Records that the server accepted events of this user. If a failure occurs again, it is reported at once.
   * @param {string} user
   */
  succeeded(user) {
    for (const key of this.#entries.keys()) if (JSON.parse(key)[0] === (user || null)) this.#entries.delete(key);
  }

  clear() {
    this.#entries.clear();
  }
}
