/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').Counts} Counts
 */

/** @returns {Counts} */
export const noCounts = () => ({
  queued: 0, queuedBytes: 0, recorded: 0, sent: 0, duplicates: 0, quarantined: 0,
  evicted: 0, wiped: 0,
});

/** The maximum number of events in quarantine. Beyond it the oldest is evicted and counted. */
export const maximumQuarantined = 1000;

/**
 * A store in memory, for events that cannot be written to disk and for tests. Events are lost with the page.
 *
 * Sequences are negative, so that they never equal sequences of a store on disk.
 */
export class MemoryStore {
  /** @type {Map<number, Row>} */
  #rows = new Map();
  /** @type {import('./types.js').QuarantinedEvent[]} */
  #quarantine = [];
  #counts = noCounts();
  #sequence = 0;

  /** @param {{ events: number, bytes: number }} limits */
  constructor(limits) {
    this.limits = limits;
  }

  /** @param {import('./types.js').NewRow[]} rows */
  async add(rows) {
    for (const row of rows) {
      const sequence = --this.#sequence;
      this.#rows.set(sequence, { ...row, sequence });
      add(this.#counts, { recorded: 1, queued: 1, queuedBytes: row.bytes });
    }
    for (const [sequence, row] of this.#rows) {
      if (!isOver(this.#counts, this.limits)) break;
      this.#rows.delete(sequence);
      add(this.#counts, { evicted: 1, queued: -1, queuedBytes: -row.bytes });
    }
  }

  /** @param {import('./types.js').ClaimRequest} request */
  async claim(request) {
    return select(this.rows, request);
  }

  /** @param {import('./types.js').DeliveryOutcome} outcome */
  async settle({ delivered, quarantined, duplicates }) {
    add(this.#counts, { duplicates });
    for (const { sequence, bytes } of delivered) {
      if (this.#rows.delete(sequence)) add(this.#counts, { sent: 1, queued: -1, queuedBytes: -bytes });
    }
    for (const { event, problem } of quarantined) {
      if (!this.#rows.delete(event.sequence)) continue;
      const { messageId, userId, body, bytes } = event;
      this.#quarantine.push({ messageId, userId: userId || null, ...problem, body });
      add(this.#counts, { quarantined: 1, queued: -1, queuedBytes: -bytes });
    }
    const excess = this.#quarantine.splice(0, this.#quarantine.length - maximumQuarantined).length;
    add(this.#counts, { quarantined: -excess, evicted: excess });
  }

  /** All queued events. */
  get rows() {
    return [...this.#rows.values()];
  }

  async counts() {
    return { ...this.#counts };
  }

  async quarantined() {
    return [...this.#quarantine];
  }

  async wipe() {
    wiped(this.#counts);
    this.#rows.clear();
    this.#quarantine = [];
  }
}

/** @param {Counts} counts @param {Partial<Counts>} changes */
export function add(counts, changes) {
  for (const [name, change] of Object.entries(changes)) counts[/** @type {keyof Counts} */ (name)] += change;
}

/** @param {any} value */
export const isCount = (value) => value >= 0 && Number.isSafeInteger(value);

/**
 * Replaces counts that are negative or not safe integers by 0.
 * @param {any} known
 */
export function soundCounts(known) {
  const counts = { ...noCounts(), ...known };
  for (const name in counts) if (!isCount(counts[name])) counts[name] = 0;
  return counts;
}

/**
 * Whether a stored row can be sent. A damaged row would make its request unreadable, so it is quarantined.
 * @param {any} row
 */
export const isSound = ({ body, userId, bytes }) => /^{[^]*}$/.test(body) && typeof userId === 'string' && isCount(bytes);

/** @param {Counts} counts */
export function wiped(counts) {
  counts.wiped += counts.queued + counts.quarantined;
  counts.queued = counts.queuedBytes = counts.quarantined = 0;
}

/**
 * Whether a limit is exceeded.
 * @param {Counts} counts @param {{ events: number, bytes: number }} limits
 */
export function isOver({ queued, queuedBytes }, { events, bytes }) {
  return queued > events || queuedBytes > bytes;
}

/**
 * Returns the first events of one user that fit into one request, or one event that is larger.
 * @param {Row[]} rows @param {import('./types.js').ClaimRequest} request
 */
export function select(rows, { events, bytes, blocked, excluded }) {
  /** @type {Row[]} */
  const selected = [];
  for (const row of rows) {
    const [first] = selected;
    if (excluded.has(row.sequence) || (first ? row.userId !== first.userId : blocked.has(row.userId))) continue;
    bytes -= row.bytes;
    if (first && (selected.length >= events || bytes < 0)) break;
    selected.push(row);
  }
  return selected;
}
