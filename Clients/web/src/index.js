export { Countersign, CountersignError } from './client.js';

/**
 * @typedef {import('./types.js').Configuration} Configuration
 * @typedef {import('./types.js').TokenProvider} TokenProvider
 * @typedef {import('./types.js').TokenRequest} TokenRequest
 * @typedef {import('./types.js').Receipt} Receipt
 * @typedef {import('./types.js').FlushResult} FlushResult
 * @typedef {import('./types.js').Snapshot} Snapshot
 * @typedef {import('./types.js').QuarantinedEvent} QuarantinedEvent
 * @typedef {import('./types.js').AuthenticationFailure} AuthenticationFailure
 */
