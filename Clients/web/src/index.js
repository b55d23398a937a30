export { Countersign, CountersignError } from './client.js';

/**
 * @typedef {import('./types').Configuration} Configuration
 * @typedef {import('./types').TokenProvider} TokenProvider
 * @typedef {import('./types').TokenRequest} TokenRequest
 * @typedef {import('./types').Receipt} Receipt
 * @typedef {import('./types').FlushResult} FlushResult
 * @typedef {import('./types').Snapshot} Snapshot
 * @typedef {import('./types').QuarantinedEvent} QuarantinedEvent
 * @typedef {import('./types').AuthenticationFailure} AuthenticationFailure
 */
