import { delay, network } from './retry.js';

/**
 * @typedef {import('./types.js').Problem} Problem
 * @typedef {import('./types.js').Verdict} Verdict
 * @typedef {import('./types.js').AuthenticationFailure} AuthenticationFailure
 * @typedef {{ token: string | null, generation: number | null, problem?: Problem }} Credential
 *   With a problem: the provider had nothing better, and the server is the judge. Without a generation: nothing may go.
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

/** How it stands with one user's token. */
class Entry {
  /**
   * Empty after a log-out that left events: they wait for another token.
   * @type {string | null}
   */
  token = null;
  /** Counts up with each new token of any user, so that a late answer can be told from one about this token. */
  generation = 0;
  isLoaded = false;
  /**
   * What the last refusal said.
   * @type {Verdict | null}
   */
  verdict = null;
  /**
   * A provider that failed is left alone before `retryAt`.
   * @type {{ failures: number, retryAt: number, problem: Problem, code: number } | null}
   */
  standing = null;
  /**
   * The call of the provider.
   * @type {{ isLate: boolean } | null}
   */
  search = null;
  /** The generation that the provider has just returned and the device clock calls expired: the server is the judge. */
  doubtful = 0;
  forgettings = 0;

  /** If it has changed while the provider was asked, what that returns is out of date. */
  get baseline() {
    return `${this.generation} ${this.forgettings}`;
  }
}

/** The tokens of signed users: handed over by the app, stored, or fetched from the app's provider. */
export class Tokens {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  #lastGeneration = 0;
  /** Who is logging out, and has not handed over a token since. */
  leaving = new Set();
  /**
   * Milliseconds to the server's clock, and device clock less uptime when that was learned.
   * @type {{ offset: number, base: number } | null}
   */
  #serverClock = null;

  /**
   * @param {object} options
   * @param {import('./types.js').TokenProvider} [options.provider]
   * @param {import('./types.js').Clock} options.clock
   * @param {() => number} options.random
   * @param {(user: string) => Promise<string | undefined>} options.load The stored token.
   * @param {(user: string, token: string | null, isBack?: boolean) => void} options.save Keeps a token for the next start and
   *   the other tabs, with what these `take` of it.
   * @param {(user: string, generation: number) => void} options.changed There is another token.
   * @param {(user: string) => void} options.sought The provider has returned, or its time is up.
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
   * The newest token that is known without asking anybody.
   * @param {string} user
   */
  token(user) {
    return this.#entries.get(user)?.token ?? null;
  }

  /**
   * Reads a user's token from the storage: once, and again when it was refused, since another tab may have a newer.
   * @param {string} user @param {number | null} [rejected] The generation that the server has refused.
   */
  async load(user, rejected = NaN) {
    const entry = this.#entry(user);
    if (!user || (entry.isLoaded && entry.generation !== rejected)) return;
    const { baseline } = entry;
    const token = await this.options.load(user).catch(() => undefined);
    entry.isLoaded = true;
    if (token != null && entry.baseline === baseline) this.#set(entry, token);
  }

  /**
   * Returns false if it is the token that is there already.
   * @param {Entry} entry @param {string} token
   */
  #set(entry, token) {
    if (entry.token === token) return false;
    Object.assign(entry, { token, generation: ++this.#lastGeneration, isLoaded: true, standing: null });
    return true;
  }

  // What the app says

  /**
   * Takes a token that the app hands over, in this tab or another.
   * @param {string} user @param {string} token @param {boolean} [isOwn]
   * @param {boolean} [isBack] False if a provider has it: that the app hands over a token ends a log-out.
   */
  take(user, token, isOwn = true, isBack = true) {
    if (!isToken(token)) return this.#fail(decodingError, 'token_malformed', user, null, 'app');
    const entry = this.#entry(user);
    if (isBack) this.leaving.delete(user);
    // Also if it is the same: in another tab the user may be logging out.
    if (isOwn) this.options.save(user, token, isBack);
    if (!this.#set(entry, token)) {
      if (entry.verdict) this.#fail(entry.verdict.code, 'token_unchanged', user, token, 'app');
      return;
    }
    // In answer to a refusal this is a mistake of the app; otherwise the server is the judge.
    if (entry.verdict && this.#isExpired(token)) this.#fail(expired, 'token_expired', user, token, 'app');
    this.options.changed(user, entry.generation);
  }

  /**
   * The last flush of a log-out is over. Without any token nothing is kept back: users of an app without tokens come back
   * without one, too.
   * @param {string} user @param {boolean} isComplete Whether it left nothing.
   */
  left(user, isComplete) {
    if (!this.leaving.delete(user)) return;
    const token = !isComplete && (this.options.provider || this.token(user) !== null) ? '' : null;
    this.forget(user, token);
    this.options.save(user, token);
  }

  /** @param {string} user @param {string | null} token What is known instead: empty or nothing. */
  forget(user, token) {
    const entry = this.#entry(user);
    Object.assign(entry, { token, generation: 0, verdict: null, standing: null, isLoaded: true, doubtful: 0 });
    entry.forgettings += 1;
  }

  forgetAll() {
    this.leaving.clear();
    for (const user of this.#entries.keys()) this.forget(user, null);
  }

  /** @param {number} code @param {string} reason @param {string} user @param {string | null} token @param {'app' | 'provider'} origin @param {number} [requestTimeMs] */
  #fail(code, reason, user, token, origin, requestTimeMs = this.options.clock.now()) {
    this.options.failed({ code, reason, userId: user, token, isOptional: false, requestTimeMs, origin, clockSkew: null, occurrences: 1 });
  }

  // What the server says

  /** @param {string} user */
  accepted(user) {
    this.#entry(user).verdict = null;
  }

  /**
   * Returns false for a token that was sent for want of a better one, which was told already.
   * @param {string} user @param {Verdict} verdict
   */
  refused(user, verdict) {
    const entry = this.#entry(user);
    entry.verdict = verdict;
    return entry.standing?.code !== verdict.code;
  }

  // Finding

  /**
   * The credential to send with, after `load`; `pending`: the provider is asked, `sought` is to follow.
   * @param {string} user @param {number | null} rejected The generation that the server has refused.
   * @returns {Credential | 'pending'}
   */
  credential(user, rejected) {
    if (!user) return { token: null, generation: 0 };
    const entry = this.#entry(user);
    const { token } = entry;
    const generation = token === '' ? null : entry.generation;
    const { provider, clock } = this.options;
    const reason = this.#need(entry, rejected);
    if (!provider || !reason) return { token, generation, problem: generation === null ? problemOf('logged_out') : undefined };
    if (entry.search) return entry.search.isLate ? { token, generation, problem: timedOut } : 'pending';
    if (entry.standing && clock.uptime() < entry.standing.retryAt) return { token, generation, problem: entry.standing.problem };
    this.#ask(provider, user, entry, reason);
    return 'pending';
  }

  /**
   * Why there has to be another token.
   * @param {Entry} entry @param {number | null} [rejected] @returns {import('./types.js').TokenRequest['reason'] | null}
   */
  #need({ token, generation, doubtful }, rejected) {
    return !token ? 'missing' : generation === rejected ? 'rejected'
      : doubtful !== generation && this.#isExpired(token, expiryMargin) ? 'expired' : null;
  }

  /**
   * Whether `token` is what `credential` would give at once, and has not ended.
   * @param {string} user
   */
  isReady(user) {
    const entry = this.#entry(user);
    return !user || (entry.isLoaded && !(entry.token === null ? this.options.provider : this.#need(entry)));
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
        // Not at once even if chance says so.
        const retryAt = clock.uptime() + Math.max(1, delay(network, failures, this.options.random()));
        entry.standing = { failures, retryAt, problem, code };
        this.#fail(code, problem.code, user, entry.token || null, 'provider', requestTime);
      }
      this.options.sought(user);
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
   * Takes what the provider has returned. Returns what is wrong with it.
   * @param {string} user @param {Entry} entry @param {string} reason @param {string | null} text @param {Problem} [problem]
   */
  #returned(user, entry, reason, text, problem) {
    if (problem) return problem;
    if (!isToken(text)) return problemOf('token_malformed');
    if (text === entry.token && reason === 'rejected') return problemOf('token_unchanged');
    if (this.#set(entry, text)) this.options.save(user, text);
    // Never withheld: the device clock may be what is wrong, and only an answer can tell.
    entry.doubtful = this.#isExpired(text, expiryMargin) ? entry.generation : 0;
    entry.standing = null;
  }

  /** Asks the provider again even if it has just failed. */
  resume() {
    for (const { standing } of this.#entries.values()) if (standing) standing.retryAt = -Infinity;
  }

  // Time

  /** @param {number} serverTime Milliseconds since 1970. */
  noteServerTime(serverTime) {
    const { clock } = this.options;
    this.#serverClock = { offset: serverTime - clock.now(), base: clock.now() - clock.uptime() * 1000 };
  }

  /** Seconds by which the server's clock is ahead; 0 if nothing is known, or somebody has set the device clock since. */
  get clockOffset() {
    const { clock } = this.options;
    const known = this.#serverClock;
    if (known && Math.abs(clock.now() - clock.uptime() * 1000 - known.base) > clockTolerance * 1000) this.#serverClock = null;
    return (this.#serverClock?.offset ?? 0) / 1000;
  }

  /**
   * Judged in the server's time: the device clock may be wrong.
   * @param {string} token
   */
  #isExpired(token, margin = 0) {
    const expiresAt = expiryOf(token);
    return expiresAt !== null && expiresAt <= this.options.clock.now() / 1000 + this.clockOffset + margin;
  }
}

/**
 * What is wrong with a provider; docs/error-codes.md has the words.
 * @param {string} code
 */
const problemOf = (code) => ({ code, reason: '' });
const timedOut = problemOf('provider_timed_out');

/**
 * Whether it can stand in a header field.
 * @param {unknown} text @returns {text is string}
 */
function isToken(text) {
  return typeof text === 'string' && text.length <= 16_384 && /^[!-~]+$/.test(text);
}

/**
 * When a token says that it expires, in seconds since 1970; the signature is not checked.
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
