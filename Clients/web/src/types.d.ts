/** Shapes of the client. Times are seconds unless a name says otherwise. */

/** A code and words, both safe to log. */
export interface Problem { code: string; reason: string }

/** What a server says about a token. */
export interface Verdict {
  /** One of docs/error-codes.md. */
  code: number;
  /** The same as a word, such as `EXPIRED`. */
  reason: string;
  /** Seconds by which the device clock is ahead of the server's, where that is why the token failed. */
  clockSkew: number | null;
  /** How to put it right, in the server's words; empty if it does not say. */
  hint: string;
}

/** What the client tells a token provider when it needs a token. */
export interface TokenRequest {
  /** Whose token. Not always the current user: events of an earlier one may still wait. */
  userId: string;
  /** `missing`: there is none. `expired`: it has expired or is about to. `rejected`: the server has refused it. */
  reason: 'missing' | 'expired' | 'rejected';
  /** What the server said, for `rejected`; null otherwise. */
  code: number | null;
}

/**
 * Gets a token for a user from the app's backend; null says that there is none, and an error means the same. Never called
 * twice at the same time for one user, in whatever tabs. It may take 30 seconds.
 */
export type TokenProvider = (request: TokenRequest) => Promise<string | null | undefined> | string | null | undefined;

export interface Configuration {
  /** The server's base URL. Events go to `/v1/batch` below it. */
  endpoint: string;
  /** The app's key. It names the app and proves nothing. */
  writeKey: string;
  /** Asked for a token when there is none, when it expires and when the server refuses it. */
  tokenProvider?: TokenProvider;
}

/** Where an event is that was recorded. */
export interface Receipt {
  /** Made when it was recorded and never changed: what the server drops duplicates by. */
  messageId: string;
  /**
   * `disk`: it survives reloads and crashes until a server has it. `memory`: the browser gave no storage, so it is lost with
   * the page unless it is sent before. `dropped`: it is gone, as the client was closed or wiped.
   */
  stored: 'disk' | 'memory' | 'dropped';
}

/** A token that a server did not accept, or that could not be obtained. */
export interface AuthenticationFailure {
  /** One of docs/error-codes.md. */
  code: number;
  /** Its name, such as `EXPIRED`; where the provider or the app is at fault a word such as `token_unchanged`. */
  reason: string;
  /** Whose token. */
  userId: string | null;
  /** The token; null if there was none. A credential: never log it. */
  token: string | null;
  /** True if the server has taken the events all the same. */
  isOptional: boolean;
  /** When the request began, by the device's clock: milliseconds since 1970. */
  requestTimeMs: number;
  /** Who found out. */
  origin: 'server' | 'provider' | 'app';
  /** Seconds by which the device clock is ahead of the server's, when the token would be good by the device clock. */
  clockSkew: number | null;
  /** How often this has happened with this user, token and code, this time included. */
  occurrences: number;
}

/** One request of a flush, or one that could not be made for want of a token. */
export interface FlushBatch {
  userId: string | null;
  eventCount: number;
  /** How many of them the server has now. */
  deliveredCount: number;
  /** `delivered`, `retry_later`, `token_problem`, `refused`, `quarantined` or `configuration_problem`. */
  outcome: string;
  /** A code of the server or of the network; empty when delivered. */
  code: string;
}

export interface FlushResult {
  batches: FlushBatch[];
  /**
   * `drained`, `parked` (what could be sent was; the rest waits for tokens of its users), `interrupted`,
   * `configuration_problem`, `waiting_for_token_provider` or `closed`.
   */
  ending: string;
  /** Events that are in the queue afterwards. */
  queued: number;
  /** True when the queue is empty. */
  isComplete: boolean;
}

/** Counters of a queue, over its whole life. */
export interface Counts {
  queued: number; queuedBytes: number; recorded: number; sent: number; duplicates: number; quarantined: number;
  /** Pushed out by a limit, of the queue or of the quarantine. */
  evicted: number; wiped: number;
}

/** `recorded` is the sum of `queued`, `sent`, `quarantined`, `evicted` and `wiped`. */
export interface Snapshot extends Counts {
  /** Where new events are kept. */
  storage: 'disk' | 'memory';
  /** Why they are in memory; null if they are not. */
  storageProblem: string | null;
  /** Events that are on their way to the storage. */
  unsaved: number;
  /** Events that were never stored: too many waited for the storage, or it was wiped meanwhile. */
  dropped: number;
  /** Users whose events wait for a token. */
  parked: { userId: string | null; reason: string; failures: number; isPaused: boolean; nextAttemptIn: number | null }[];
  /** What has to change before anything gets through. */
  configurationProblem: string | null;
  /** The last failure of server or network since something was accepted. */
  lastError: string | null;
  /** Seconds until the next try after such a failure. */
  nextAttemptIn: number | null;
  /** In all, the repeated ones included. */
  authenticationFailures: number;
  /** Seconds by which the server's clock is ahead. */
  clockOffset: number;
  sessionId: string;
}

export interface QuarantinedEvent { messageId: string; userId: string | null; code: string; reason: string; body: string }

// Inside the client

export interface NewRow {
  messageId: string;
  /** Empty: nobody was identified. */
  userId: string;
  /** One message of the native dialect, as JSON. */
  body: string;
  /** Of `body` in UTF-8. */
  bytes: number;
}

export interface Row extends NewRow { /** Its place in the queue; never used twice. Negative in memory. */ sequence: number }

export interface ClaimRequest { events: number; bytes: number; blocked: Set<string>; excluded: Set<number> }

export interface Settlement { delivered: Row[]; quarantined: { event: Row; problem: Problem }[]; duplicates: number }

/** Where events are kept. Every method is one transaction; a rejected promise says that nothing changed. */
export interface Store {
  add(rows: NewRow[]): Promise<void>;
  claim(request: ClaimRequest): Promise<Row[]>;
  settle(settlement: Settlement): Promise<void>;
  counts(): Promise<Counts>;
  quarantined(): Promise<QuarantinedEvent[]>;
  /** What is kept under `key`; `initial` is put there first if there is nothing. */
  meta(key: string, initial?: any): Promise<any>;
  setMeta(values: [string, any][]): Promise<void>;
  /** Removes all rows and all of `meta`. */
  wipe(): Promise<void>;
  /** A transaction took too long. It may still end. */
  reopen?(): void;
}

/** A few values that are stored synchronously, beside the store; null if there are none. Neither method throws. */
export interface Journal { read(): Record<string, any> | null; write(values: Record<string, any> | null): void }

export interface TransportResponse { status: number; header(name: string): string | null; body: string }

export type Meaning =
  | { kind: 'accepted'; duplicates: number; rejected: Map<number, Problem>; warning: Verdict | null }
  | { kind: 'token'; verdict: Verdict }
  | { kind: 'tooLarge' }
  | { kind: 'refused' | 'serverFault' | 'configuration' | 'tryLater'; problem: Problem };

export interface Answer {
  meaning: Meaning;
  retryAfter: number | null;
  /** The same as an instant, where the answer does not say what time it is at the server. Milliseconds since 1970. */
  retryAt: number | null;
  /** The server's clock. Milliseconds since 1970. */
  serverTime: number | null;
}

export interface Clock {
  /** Milliseconds since 1970; may jump. */
  now(): number;
  /** Seconds; only grows. */
  uptime(): number;
  /** Calls back at an uptime. Returns what cancels that. */
  at(instant: number, call: () => void): () => void;
}

export interface TransportRequest { url: string; headers: Record<string, string>; body: string; keepalive: boolean; signal?: AbortSignal }

/** What the client needs of the browser; tests bring their own. */
export interface Platform {
  clock: Clock;
  random(): number;
  /** Rejects with a `Problem` if there is no answer. */
  send(request: TransportRequest): Promise<TransportResponse>;
  /** Throws, or is null, where the browser gives no storage. */
  store(name: string): Store | null;
  journal(name: string): Journal;
  /** Says something to the developer. */
  warn(text: string): void;
  /** Runs `body` while no other tab runs one of this name. */
  lock(name: string, signal: AbortSignal, body: () => Promise<void>): Promise<void>;
  /** Messages to the other tabs. */
  channel(name: string, hear: (message: any) => void): { post(message: any): void; close(): void };
  isHidden(): boolean;
  /** `hidden`, `visible`, `leave` (the page may be gone for good after it), `return`. Returns what ends it. */
  onPage(hear: (event: 'hidden' | 'visible' | 'leave' | 'return') => void): () => void;
}
