import { delay, network } from './retry.js';

/**
 * @typedef {import('./types.js').Problem} Problem
 * @typedef {import('./types.js').Verdict} Verdict
 * @typedef {import('./types.js').AuthenticationFailure} AuthenticationFailure
 * @typedef {{ token: string | null, generation: number | null, problem?: Problem }} Credential
 *   If `generation` is null, nothing is sent, and `problem` is the reason. Otherwise `token` is sent, and `problem` is
 *   the reason why there is no better token.
 */

/** Seconds that the provider may take. */
const providerTimeout = 30;
/** A token that expires this soon, in seconds, is replaced before it is used. */
const expiryMargin = 5;
/** Seconds by which the device clock may drift, as it does while it is adjusted gradually. */
const clockTolerance = 30;

const missingToken = 26;
const expired = 22;
const decodingError = 20;

/** The state of one user's token. */
class Entry {
  /**
   * Empty after a log-out with unsent events, which wait for another token.
   * @type {string | null}
   */
  token = null;
  /**
   * Increases with each new token of any user, to detect late responses about an earlier token; 0 without a token. Null
   * until the stored token was read.
   * @type {number | null}
   */
  generation = null;
  /**
   * The server's reason for the last rejection.
   * @type {Verdict | null}
   */
  verdict = null;
  /**
   * The provider's last failure. The provider is not called again before `retryAt`.
   * @type {{ failures: number, retryAt: number, problem: Problem, code: number } | null}
   */
  standing = null;
  /**
   * The pending call of the provider.
   * @type {{ isLate: boolean } | null}
   */
  search = null;
  /** The generation of a provider's token that seems expired. It is sent, because the device clock may be wrong. */
  doubtful = 0;
  clearCount = 0;

  /** If this changes during a call of the provider, the returned token is outdated. */
  get baseline() {
    return `${this.generation} ${this.clearCount}`;
  }
}

/** The tokens of users: set by the app, stored, or fetched from the app's provider. */
export class Tokens {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  #lastGeneration = 0;
  /** Users with a pending log-out, unless a token was set since it began. */
  signingOut = new Set();
  /**
   * `offset`: server clock minus device clock. `base`: device clock minus uptime, at the same moment. Milliseconds.
   * @type {{ offset: number, base: number } | null}
   */
  #serverClock = null;

  /**
   * @param {object} options
   * @param {import('./types.js').TokenProvider} [options.provider]
   * @param {import('./types.js').Clock} options.clock
   * @param {() => number} options.random
   * @param {(user: string) => Promise<string | undefined>} options.load Reads the stored token.
   * @param {(user: string, token: string | null, isBack?: boolean) => void} options.save Stores a token for
   *   the next start and sends it to the other tabs, which `take` or `forget` it.
   * @param {(user: string, generation: number) => void} options.changed The user has another token.
   * @param {(user: string) => void} options.resolved The provider has returned or timed out.
   * @param {(failure: AuthenticationFailure) => void} options.failed
   */
  constructor(options) {
    this.options = options;
  }

  /** @param {string} user */
  #entry(user) {
    let entry = this.#entries.get(user);
    if (!entry) this.#entries.set(user, (entry = new Entry()));
    return entry;
  }

  /**
   * The newest token in memory.
   * @param {string} user
   */
  token(user) {
    return this.#entries.get(user)?.token ?? null;
  }

  /**
   * Reads a user's token from the storage: once, and again after a rejection, since another tab may have
   * stored a newer token.
   * @param {string} user @param {number | null} [rejected] The generation that the server has rejected.
   */
  async load(user, rejected = null) {
    const entry = this.#entry(user);
    if (!user || entry.generation !== rejected) return;
    const { baseline } = entry;
    // If reading fails, `generation` stays null and nothing is sent: the stored token may be empty after a log-out.
    await this.options.load(user).then((token) => {
      if (token != null && entry.baseline === baseline) this.#set(entry, token);
      entry.generation ??= 0;
    }).catch(() => {});
  }

  /**
   * Returns false if the token is unchanged.
   * @param {Entry} entry @param {string} token
   */
  #set(entry, token) {
    if (entry.token === token) return false;
    Object.assign(entry, { token, generation: ++this.#lastGeneration, standing: null });
    return true;
  }

  // Tokens from the app

  /**
   * Uses a token that the app has set, in this tab or another.
   * @param {string} user @param {string} token @param {boolean} [isOwn]
   * @param {boolean} [isBack] Whether the token ends a log-out; false for a provider's token.
   */
  take(user, token, isOwn = true, isBack = true) {
    if (!isToken(token)) return this.#fail(decodingError, 'token_malformed', user, null, 'app');
    const entry = this.#entry(user);
    if (isBack) this.signingOut.delete(user);
    // Save an unchanged token too: in another tab the user may be signing out.
    if (isOwn) this.options.save(user, token, isBack);
    if (!this.#set(entry, token)) {
      if (entry.verdict) this.#fail(entry.verdict.code, 'token_unchanged', user, token, 'app');
      return;
    }
    // After a rejection an expired token is the app's mistake. Otherwise the server decides.
    if (entry.verdict && this.#isExpired(token)) this.#fail(expired, 'token_expired', user, token, 'app');
    this.options.changed(user, /** @type {number} */ (entry.generation));
  }

  /**
   * Ends a log-out after its flush. If the user had no token and there is no provider, remaining events are
   * sent without a token.
   * @param {string} user @param {boolean} isComplete Whether the flush sent all events.
   */
  left(user, isComplete) {
    if (!this.signingOut.delete(user)) return;
    const { token, generation } = this.#entry(user);
    // If `generation` is null, the stored token could not be read, so the user may have a token.
    const left = isComplete || (generation !== null && token === null && !this.options.provider) ? null : '';
    this.forget(user, left);
    this.options.save(user, left);
  }

  /** @param {string} user @param {string | null} token The replacement: empty or null. */
  forget(user, token) {
    const entry = this.#entry(user);
    Object.assign(entry, { token, generation: 0, verdict: null, standing: null, doubtful: 0 });
    entry.clearCount += 1;
  }

  forgetAll() {
    this.signingOut.clear();
    for (const user of this.#entries.keys()) this.forget(user, null);
  }

  /** @param {number} code @param {string} reason @param {string} user @param {string | null} token @param {'app' | 'provider'} origin @param {number} [requestTimeMs] */
  #fail(code, reason, user, token, origin, requestTimeMs = this.options.clock.now()) {
    this.options.failed({ code, reason, userId: user, token, isOptional: false, requestTimeMs, origin, clockSkew: null, occurrences: 1 });
  }

  // Responses of the server

  /** @param {string} user */
  accepted(user) {
    this.#entry(user).verdict = null;
  }

  /**
   * Returns false if the provider's failure was already reported with the same code.
   * @param {string} user @param {Verdict} verdict
   */
  rejected(user, verdict) {
    const entry = this.#entry(user);
    entry.verdict = verdict;
    return entry.standing?.code !== verdict.code;
  }

  // Tokens for requests

  /**
   * Returns the credential for a request, or `pending` until `resolved` is called. Call `load` before.
   * @param {string} user @param {number | null} rejected The generation that the server has rejected.
   * @returns {Credential | 'pending'}
   */
  credential(user, rejected) {
    if (!user) return { token: null, generation: 0 };
    const entry = this.#entry(user);
    const { token } = entry;
    const generation = token === '' ? null : entry.generation;
    const { provider, clock } = this.options;
    const reason = this.#need(entry, rejected);
    if (!provider || !reason) return { token, generation, problem: generation === null ? problemOf(token === null ? 'store_unreadable' : 'logged_out') : undefined };
    if (entry.search) return entry.search.isLate ? { token, generation, problem: timedOut } : 'pending';
    if (entry.standing && clock.uptime() < entry.standing.retryAt) return { token, generation, problem: entry.standing.problem };
    this.#ask(provider, user, entry, reason);
    return 'pending';
  }

  /**
   * The reason for requesting another token; null if the current token can be used.
   * @param {Entry} entry @param {number | null} [rejected] @returns {import('./types.js').TokenRequest['reason'] | null}
   */
  #need({ token, generation, doubtful }, rejected) {
    return !token ? 'missing' : generation === rejected ? 'rejected'
      : doubtful !== generation && this.#isExpired(token, expiryMargin) ? 'expired' : null;
  }

  /**
   * Whether a request can be sent now: the stored token was read, and no other token is needed.
   * @param {string} user
   */
  isReady(user) {
    const entry = this.#entry(user);
    return !user || (entry.generation !== null && !(entry.token === null ? this.options.provider : this.#need(entry)));
  }

  /** @param {import('./types.js').TokenProvider} provider @param {string} user @param {Entry} entry @param {import('./types.js').TokenRequest['reason']} reason */
  #ask(provider, user, entry, reason) {
    const { clock } = this.options;
    const { baseline } = entry;
    /** @type {{ isLate: boolean }} */
    const search = (entry.search = { isLate: false });
    const requestTime = clock.now();
    const code = reason === 'rejected' ? entry.verdict?.code ?? null : null;
    /** @param {string | null} text @param {Problem} [problem] */
    const settle = (text, problem) => {
      if (entry.baseline === baseline) problem = this.#returned(user, entry, reason, text, problem);
      else problem = undefined;
      if (problem) {
        const code = { missing: missingToken, expired, rejected: entry.verdict?.code ?? expired }[reason];
        const failures = (entry.standing?.failures ?? 0) + 1;
        // At least a second, because the jitter may be 0.
        const retryAt = clock.uptime() + Math.max(1, delay(network, failures, this.options.random()));
        entry.standing = { failures, retryAt, problem, code };
        this.#fail(code, problem.code, user, entry.token || null, 'provider', requestTime);
      }
      this.options.resolved(user);
    };
    const cancel = clock.at(clock.uptime() + providerTimeout, () => {
      search.isLate = true;
      settle(null, timedOut);
    });
    /** @param {string | null} text @param {Problem} [problem] */
    const finish = (text, problem) => {
      cancel();
      entry.search = null;
      if (!search.isLate) settle(text, problem);
      else if (text && isToken(text) && entry.baseline === baseline) this.take(user, text, true, false);
    };
    new Promise((resolve) => resolve(provider({ userId: user, reason, code }))).then(
      (text) => finish(/** @type {string} */ (text ?? null), text == null ? problemOf('no_token') : undefined),
      () => finish(null, problemOf('provider_failed')));
  }

  /**
   * Stores the provider's token. Returns the problem if it cannot be used.
   * @param {string} user @param {Entry} entry @param {string} reason
   * @param {string | null} text @param {Problem} [problem]
   */
  #returned(user, entry, reason, text, problem) {
    if (problem) return problem;
    if (!isToken(text)) return problemOf('token_malformed');
    if (text === entry.token && reason === 'rejected') return problemOf('token_unchanged');
    if (this.#set(entry, text)) this.options.save(user, text);
    // Send a token that seems expired: the device clock may be wrong.
    entry.doubtful = this.#isExpired(text, expiryMargin) ? /** @type {number} */ (entry.generation) : 0;
    entry.standing = null;
  }

  /** Lets the provider be called again, even right after a failure. */
  resume() {
    for (const { standing } of this.#entries.values()) if (standing) standing.retryAt = -Infinity;
  }

  // Time

  /** @param {number} serverTime Milliseconds since 1970. */
  noteServerTime(serverTime) {
    const { clock } = this.options;
    this.#serverClock = { offset: serverTime - clock.now(), base: clock.now() - clock.uptime() * 1000 };
  }

  /** Seconds by which the server's clock is ahead; 0 if unknown or if the device clock was set since. */
  get clockOffset() {
    const { clock } = this.options;
    const known = this.#serverClock;
    if (known && Math.abs(clock.now() - clock.uptime() * 1000 - known.base) > clockTolerance * 1000) this.#serverClock = null;
    return (this.#serverClock?.offset ?? 0) / 1000;
  }

  /**
   * Whether the token has expired by the server's clock. The device clock may be wrong.
   * @param {string} token
   */
  #isExpired(token, margin = 0) {
    const expiresAt = expiryOf(token);
    return expiresAt !== null && expiresAt <= this.options.clock.now() / 1000 + this.clockOffset + margin;
  }
}

/**
 * A problem with a token. The codes are in docs/reference/error-codes.md.
 * @param {string} code
 */
const problemOf = (code) => ({ code, reason: '' });
const timedOut = problemOf('provider_timed_out');

/**
 * Whether the text can be sent in a header field.
 * @param {unknown} text @returns {text is string}
 */
export function isToken(text) {
  return typeof text === 'string' && text.length <= 16_384 && /^[!-~]+$/.test(text);
}

/**
 * The token's `exp` in seconds since 1970; null without one. The signature is not checked.
 * @param {string | null} token
 */
function expiryOf(token) {
  try {
    const claims = /** @type {string} */ (token).split('.')[1].replace(/-/g, '+').replace(/_/g, '/');
    const { exp } = JSON.parse(atob(claims));
    return typeof exp === 'number' ? exp : null;
  } catch {
    return null;
  }
}
