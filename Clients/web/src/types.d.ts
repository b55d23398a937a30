/** Types of the client. Times are in seconds unless a name or a comment says otherwise. */

/** A code and a description, both safe to log. */
export interface Problem { code: string; reason: string }

/** A server's result for a token. */
export interface Verdict {
  /** A code from docs/reference/error-codes.md. */
  code: number;
  /** The name of the code, such as `EXPIRED`. */
  reason: string;
  /** Seconds by which the device clock is ahead of the server's, if the token failed because of that. */
  clockSkew: number | null;
  /** The server's advice on how to fix the problem; empty if missing. */
  hint: string;
}

/** A request for a token, passed to a token provider. */
export interface TokenRequest {
  /** The user to get a token for. Not always the current user: an earlier user's events may still wait. */
  userId: string;
  /** `missing`, `expired` (or about to expire), or `rejected` by the server. */
  reason: 'missing' | 'expired' | 'rejected';
  /** The server's code, for `rejected`; null otherwise. */
  code: number | null;
}

/**
 * Gets a token for a user from the app's backend. Null or an error means that there is no token. Called only in
 * tabs that send events, one call at a time for each user. The client waits 30 seconds for the result.
 */
export type TokenProvider = (request: TokenRequest) => Promise<string | null | undefined> | string | null | undefined;

export interface Configuration {
  /** The server's base URL. Events go to `/v1/batch` below it. */
  endpoint: string;
  /** The app's key. It identifies the app and is not a secret. */
  writeKey: string;
  /** Called when a token is missing, expires or is rejected by the server. */
  tokenProvider?: TokenProvider;
  /** The facts about the app and the browser that each event carries. */
  context?: {
    /** The parts that events carry, besides the client's name and version. Default: all. */
    parts?: ('app' | 'os' | 'locale')[];
    /** The app's version and build. */
    appVersion?: string; appBuild?: string;
  };
}

/** Where a recorded event is stored. */
export interface Receipt {
  /** Set when the event is recorded and never changed. The server drops duplicates by it. */
  messageId: string;
  /**
   * `disk`: the event survives reloads and crashes until a server has it. `memory`: it could not be written
   * to disk and is lost with the page unless sent before. `dropped`: the client was closed or wiped, or too many
   * events waited for the storage.
   */
  stored: 'disk' | 'memory' | 'dropped';
}

/** A token that a server did not accept or that could not be obtained. */
export interface AuthenticationFailure {
  /** A code from docs/reference/error-codes.md. */
  code: number;
  /** The code's name, such as `EXPIRED`. If `origin` is not `server`, a word such as `token_unchanged`. */
  reason: string;
  /** The token's user; null without a user. */
  userId: string | null;
  /** The token; null if missing. A credential: never log it. */
  token: string | null;
  /** True if the server accepted the events anyway. */
  isOptional: boolean;
  /** When the request began, by the device's clock: milliseconds since 1970. */
  requestTimeMs: number;
  /** The component that reported the failure. */
  origin: 'server' | 'provider' | 'app';
  /** Seconds by which the device clock is ahead of the server's, if the token failed because of that. */
  clockSkew: number | null;
  /** The number of failures with this user, token and code, this one included. */
  occurrences: number;
}

/** A request of a flush, or a request that was not made because a token was missing. */
export interface FlushBatch {
  userId: string | null;
  eventCount: number;
  /** The number of events that the server accepted. */
  deliveredCount: number;
  /** `delivered`, `retry_later`, `token_problem`, `refused`, `quarantined` or `configuration_problem`. */
  outcome: string;
  /** A code of the server or of the network; empty when delivered. */
  code: string;
}

export interface FlushResult {
  batches: FlushBatch[];
  /**
   * `drained`, `parked` (the remaining events are of users in `Snapshot.parked`), `interrupted`,
   * `configuration_problem`, `waiting_for_token_provider` or `closed`.
   */
  ending: string;
  /** Events that are in the queue afterwards. */
  queued: number;
  /** True if the queue is empty and `ending` is `drained`. */
  isComplete: boolean;
}

/** Counters of a queue: its present content, and totals over its whole life. */
export interface Counts {
  queued: number; queuedBytes: number; recorded: number; sent: number; duplicates: number; quarantined: number;
  /** Evicted by a limit of the queue or of the quarantine. */
  evicted: number; wiped: number;
}

/** `recorded` is the sum of `queued`, `sent`, `quarantined`, `evicted` and `wiped`. */
export interface Snapshot extends Counts {
  /** Where new events are stored. */
  storage: 'disk' | 'memory';
  /** Why events are stored in memory; null if they are not. */
  storageProblem: string | null;
  /** Events that wait for the storage. */
  unsaved: number;
  /** Events that were never stored: the client was closed or wiped, or too many waited for the storage. */
  dropped: number;
  /** Users whose events wait for a token or for the end of a restriction. */
  parked: { userId: string | null; reason: string; failures: number; isPaused: boolean; nextAttemptIn: number | null }[];
  /** The configuration problem that stops sending, except for rare retries and flushes; null without one. */
  configurationProblem: string | null;
  /** The last failure after the last accepted request; null without one. */
  lastError: string | null;
  /** Seconds until the next try after this failure; null without one. */
  nextAttemptIn: number | null;
  /** The number of authentication failures, repeated ones included. */
  authenticationFailures: number;
  /** Seconds by which the server's clock is ahead. */
  clockOffset: number;
  sessionId: string;
}

export interface QuarantinedEvent { messageId: string; userId: string | null; code: string; reason: string; body: string }

// Internal types

export interface NewRow {
  messageId: string;
  /** Empty without a user. */
  userId: string;
  /** The event as JSON, in the format of `/v1/batch`. */
  body: string;
  /** The size of `body` in UTF-8. */
  bytes: number;
}

export interface Row extends NewRow { /** Position in the queue; never reused. Negative in memory. */ sequence: number }

export interface ClaimRequest { events: number; bytes: number; blocked: Set<string>; excluded: Set<number> }

export interface DeliveryOutcome { delivered: Row[]; quarantined: { event: Row; problem: Problem }[]; duplicates: number }

/** A store of events. Every method is one transaction; a rejected promise means that nothing changed. */
export interface Store {
  add(rows: NewRow[]): Promise<void>;
  claim(request: ClaimRequest): Promise<Row[]>;
  settle(outcome: DeliveryOutcome): Promise<void>;
  counts(): Promise<Counts>;
  quarantined(): Promise<QuarantinedEvent[]>;
  /** The value under `key`. If missing, `initial` is stored first. */
  meta(key: string, initial?: any): Promise<any>;
  setMeta(values: [string, any][]): Promise<void>;
  /** Removes all rows and all of `meta`. */
  wipe(): Promise<void>;
  /** Closes the database after a timeout. The next transaction opens it; the late one may still complete. */
  reopen?(): void;
}

/** A few values that are stored synchronously, apart from `Store`; null if empty. Neither method throws. */
export interface Journal { read(): Record<string, any> | null; write(values: Record<string, any> | null): void }

export interface TransportResponse { status: number; header(name: string): string | null; body: string }

export type Meaning =
  | { kind: 'accepted'; duplicates: number; rejected: Map<number, Problem>; warning: Verdict | null }
  | { kind: 'token'; verdict: Verdict }
  | { kind: 'tooLarge' }
  | { kind: 'rejected' | 'serverFault' | 'configuration' | 'tryLater' | 'user'; problem: Problem };

export interface Answer {
  meaning: Meaning;
  retryAfter: number | null;
  /** `Retry-After` as a date, if the response has no `Date`. Milliseconds since 1970. */
  retryAt: number | null;
  /** The server's clock. Milliseconds since 1970. */
  serverTime: number | null;
}

export interface Clock {
  /** Milliseconds since 1970; may jump. */
  now(): number;
  /** Seconds; only grows. */
  uptime(): number;
  /** Calls `call` at an uptime. Returns a function that cancels it. */
  at(instant: number, call: () => void): () => void;
}

export interface TransportRequest { url: string; headers: Record<string, string>; body: string; keepalive: boolean; signal?: AbortSignal }

/** The browser's functions that the client uses. Tests replace them. */
export interface Platform {
  clock: Clock;
  random(): number;
  /** The facts about the browser for `context`. */
  facts(): object;
  /** Rejects with a `Problem` if there is no answer. */
  send(request: TransportRequest): Promise<TransportResponse>;
  /** Throws or returns null if the browser has no storage. */
  store(name: string): Store | null;
  journal(name: string): Journal;
  /** Logs a warning for the developer. */
  warn(text: string): void;
  /** Runs `body` while no other tab runs a body under the same name. */
  lock(name: string, signal: AbortSignal, body: () => Promise<void>): Promise<void>;
  /** Sends messages to the other tabs, and passes theirs to `hear`. */
  channel(name: string, hear: (message: any) => void): { post(message: any): void; close(): void };
  isHidden(): boolean;
  /** `hidden`, `visible`, `leave` (the page may end) or `return`. Returns a function that unsubscribes. */
  onPage(hear: (event: 'hidden' | 'visible' | 'leave' | 'return') => void): () => void;
}
