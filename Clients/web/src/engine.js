import { read } from './answer.js';
import { Failures } from './failures.js';
import { Sender } from './sender.js';

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').FlushResult} FlushResult
 * @typedef {import('./types.js').AuthenticationFailure} AuthenticationFailure
 * @typedef {import('./sender.js').Consequence} Consequence
 */

/** Seconds that a request may take. */
const requestTimeout = 30;
/** Seconds that a flush waits for a provider that was being asked before it: it may wait for that flush itself. */
const patience = 5;

/** Carries out what `Sender` decides: one loop, one request at a time, in the tab that holds the lock. */
export class Engine {
  isLeading = false;
  isHidden = false;
  isClosed = false;
  #failures = new Failures();
  /** @type {Sender} */
  #sender;
  /** Another tab may have been at work: what this one knows is out of date. */
  isStale = true;
  #wake = () => {};
  /** Whether something was told since the last look at what to do. */
  #isWoken = false;
  /** @type {number | null} */
  #until = null;
  /** @type {AbortController | null} */
  #request = null;
  /** @type {import('./tokens.js').Credential} */
  #credential = { token: null, generation: 0 };
  /** @type {import('./types.js').FlushBatch[]} */
  #batches = [];
  /** @type {((result: FlushResult | null) => void)[]} */
  #flushes = [];

  /**
   * @param {object} options
   * @param {import('./queue.js').Queue} options.queue
   * @param {import('./tokens.js').Tokens} options.tokens
   * @param {import('./types.js').Clock} options.clock
   * @param {() => number} options.random
   * @param {(rows: Row[], token: string | null, signal: AbortSignal) => Promise<import('./types.js').TransportResponse>} options.send
   * @param {() => void} options.leads This tab sends from now on.
   * @param {(messageIds: string[]) => void} options.settled The server has judged these.
   * @param {(failure: AuthenticationFailure) => void} options.failed
   * @param {(user: string) => void} options.solved Something was accepted for this user.
   */
  constructor(options) {
    this.options = options;
    this.#sender = new Sender(!!options.tokens.options.provider);
  }

  get #now() {
    return this.options.clock.uptime();
  }

  /** Sends until the engine is closed or, in a hidden page, has nothing to do: a page that is frozen must not hold the lock. */
  async run() {
    if (this.isClosed) return;
    const { queue, tokens, leads } = this.options;
    if (this.isStale) {
      this.isStale = false;
      this.#sender = new Sender(!!tokens.options.provider);
      // What an earlier page has left goes at once.
      if ((await queue.counts().catch(() => null))?.queued) this.#sender.sessionStarted();
    }
    this.isLeading = true;
    leads();
    for (;;) {
      this.#isWoken = false;
      const action = this.#sender.next(this.#now);
      const isIdle = action.do === 'wait';
      if (isIdle) this.#until = action.until;
      if (this.isClosed ? action.do !== 'settle' : this.isHidden && isIdle && !this.#flushes.length) break;
      await this.#perform(action);
    }
    this.isLeading = false;
    // Whoever leads next is asked again.
    this.#finish(null);
  }

  /** Returns when there may be something to do. */
  async rest() {
    if (!this.#isWoken) await this.#wait(this.#until);
  }

  // What happens around it

  /** @param {(sender: Sender) => void} [report] */
  tell(report) {
    report?.(this.#sender);
    this.#isWoken = true;
    this.#wake();
  }

  /** @param {number} count */
  stored(count) {
    this.tell((sender) => sender.stored(count, this.#now));
  }

  sessionStarted() {
    this.tell((sender) => sender.sessionStarted());
    this.options.tokens.resume();
    this.#failures.sessionStarted();
  }

  /** @returns {Promise<FlushResult | null>} Null if this tab stopped sending meanwhile. */
  flush() {
    this.options.tokens.resume();
    this.tell((sender) => sender.flush(this.#now + patience));
    return new Promise((resolve) => this.#flushes.push(resolve));
  }

  reset() {
    this.tell((sender) => sender.reset());
    this.#failures.clear();
  }

  /** @param {boolean} isHidden */
  setHidden(isHidden) {
    this.isHidden = isHidden;
    this.tell((sender) => isHidden && sender.sendSoon());
  }

  /** Ends a request that is under way; its events stay. */
  abort() {
    this.#request?.abort();
  }

  close() {
    this.isClosed = true;
    this.abort();
    this.#finish({ batches: [], ending: 'closed', queued: 0, isComplete: false });
    this.tell();
  }

  /**
   * Whether a request for this user would keep to all waits.
   * @param {string} user
   */
  maySend(user) {
    return (this.#sender.retryAt ?? 0) <= this.#now && !this.#sender.lanes.isBlocked(user);
  }

  /** @param {AuthenticationFailure} failure */
  report(failure) {
    const news = this.#failures.record({ ...failure, userId: failure.userId || null }, this.#now);
    if (news) this.options.failed(news);
  }

  /** What only the tab that sends knows of a snapshot. */
  async describe() {
    const { lanes, configurationProblem, lastProblem, retryAt } = this.#sender;
    const now = this.#now;
    const words = (/** @type {import('./types.js').Problem | null} */ problem) => problem && `${problem.code} ${problem.reason}`.trim();
    return {
      parked: [...lanes.all].filter(([, lane]) => lane.isBlocked).map(([user, lane]) => ({
        userId: user || null, reason: lane.problem?.code ?? '', failures: lane.failures,
        isPaused: lane.state === 'paused', nextAttemptIn: lane.until === null ? null : Math.max(0, lane.until - now),
      })),
      configurationProblem: words(configurationProblem),
      lastError: words(lastProblem),
      nextAttemptIn: retryAt === null ? null : Math.max(0, retryAt - now),
      authenticationFailures: this.#failures.total,
      clockOffset: this.options.tokens.clockOffset,
    };
  }

  // The loop

  /** @param {number | null} until @returns {Promise<void>} */
  #wait(until) {
    return new Promise((resolve) => {
      const cancel = until === null ? () => {} : this.options.clock.at(until, () => this.#wake());
      this.#wake = () => {
        cancel();
        this.#wake = () => {};
        resolve();
      };
    });
  }

  /** @param {import('./sender.js').Action} action */
  async #perform(action) {
    const { queue, tokens, random } = this.options;
    const sender = this.#sender;
    switch (action.do) {
      case 'wait':
        return this.#wait(action.until);
      case 'claim':
        try {
          sender.claimed(await queue.claim(action.request), this.#now);
        } catch (error) {
          sender.claimFailed(problemOf(error), this.#now, random());
        }
        return;
      case 'authorize': {
        await tokens.load(action.user, action.rejected);
        const credential = tokens.credential(action.user, action.rejected);
        if (credential === 'pending') return sender.authorizationPending();
        this.#credential = credential;
        const { problem, generation } = credential;
        if (problem) this.#note(sender.authorizationFailed(problem, generation, this.#now, random()));
        else sender.authorized(/** @type {number} */ (generation));
        return;
      }
      case 'send':
        return this.#send(action.events);
      case 'settle':
        try {
          await queue.settle(action.settlement);
          sender.settled();
          const { delivered, quarantined } = action.settlement;
          this.options.settled([...delivered, ...quarantined.map(({ event }) => event)].map((row) => row.messageId));
        } catch (error) {
          sender.settleFailed(problemOf(error), this.#now, random());
        }
        return;
      case 'finish': {
        if (!this.#flushes.length) return;
        const queued = (await queue.counts().catch(() => null))?.queued ?? 0;
        const { ending } = action;
        this.#finish({ batches: this.#batches, ending, queued, isComplete: !queued && ending === 'drained' });
      }
    }
  }

  /** @param {FlushResult | null} result */
  #finish(result) {
    for (const resolve of this.#flushes.splice(0)) resolve(result);
    this.#batches = [];
  }

  /**
   * Keeps what a flush will report; without a flush nobody asks.
   * @param {Consequence | null} consequence
   */
  #note(consequence) {
    if (consequence && this.#flushes.length) this.#batches.push(consequence.batch);
  }

  /** @param {Row[]} events */
  async #send(events) {
    const { tokens, clock, random } = this.options;
    const sender = this.#sender;
    const user = events[0].userId;
    const { token } = this.#credential;
    const requestTimeMs = clock.now();
    const request = (this.#request = new AbortController());
    let isLate = false;
    const cancel = clock.at(this.#now + requestTimeout, () => {
      isLate = true;
      request.abort();
    });
    try {
      const answer = read(await this.options.send(events, token, request.signal), events.length);
      const { serverTime, retryAt } = answer;
      if (retryAt !== null) answer.retryAfter = Math.max(0, (retryAt - clock.now()) / 1000 - tokens.clockOffset);
      if (serverTime) tokens.noteServerTime(serverTime);
      const consequence = sender.answered(answer, this.#now, random());
      this.#note(consequence);
      const verdict = consequence?.failure;
      if (verdict) {
        if (!tokens.refused(user, verdict) && !consequence.isOptional) return;
        this.report({
          code: verdict.code, reason: verdict.reason, userId: user, token, isOptional: consequence.isOptional ?? false,
          requestTimeMs, origin: 'server', clockSkew: verdict.clockSkew, occurrences: 1,
        });
      } else if (consequence?.batch.outcome === 'delivered') {
        tokens.accepted(user);
        this.#failures.succeeded(user);
        this.options.solved(user);
      }
    } catch (error) {
      const problem = isLate ? { code: 'timed_out', reason: '' } : problemOf(error);
      this.#note(sender.failed(problem, this.#now, random()));
    } finally {
      cancel();
    }
  }
}

/** @param {any} error @returns {import('./types.js').Problem} */
function problemOf(error) {
  return error?.reason === undefined ? { code: `${error?.name}`, reason: `${error?.message}` } : error;
}
