import { isCount } from './memory-store.js';

/**
 * @typedef {import('./types.js').Problem} Problem
 * @typedef {import('./types.js').Verdict} Verdict
 * @typedef {import('./types.js').Answer} Answer
 * @typedef {import('./types.js').Meaning} Meaning
 * @typedef {import('./types.js').TransportResponse} TransportResponse
 */

const later = [408, 421, 425, 429];
const settings = [401, 403, 404, 405, 407, 410, 415, 426];

/**
 * Interprets the response to a request with `count` events. It checks the shape of the body too, because a
 * proxy or a captive portal may have sent the response.
 *
 * @param {TransportResponse} response
 * @param {number} count
 * @param {string | null} [token] The token of the request, which is removed from the server's texts.
 * @returns {Answer}
 */
export function read(response, count, token) {
  /** @type {any} */
  let body;
  try {
    body = JSON.parse(response.body, (_, value) => (token && value?.replaceAll?.(token, '(token)')) || value);
  } catch {}
  body = Object(body);
  const meaning = meaningOf(response, body, count);
  const date = instant(response.header('Date'));
  const text = response.header('Retry-After');
  const seconds = Number(text || NaN);
  const until = instant(text);
  const relative = seconds >= 0 && seconds < Infinity ? seconds
    : until && date ? Math.max(0, (until - date) / 1000) : null;
  // The Date of a proxy's own response is the time of the proxy's clock.
  const isOwn = meaning.kind === 'accepted' || meaning.kind === 'token';
  const own = Number(body.auth_error?.server_time_ms);
  return { meaning, retryAfter: relative, retryAt: relative === null ? until : null, serverTime: isOwn ? own || date : null };
}

/** @param {TransportResponse} response @param {any} body @param {number} count @returns {Meaning} */
function meaningOf(response, body, count) {
  const { status } = response;
  const problem = {
    code: String(body.code ?? `http_${status}`),
    reason: String(body.reason ?? ''),
  };
  const verdict = verdictOf(body.auth_error);
  if (verdict) return { kind: 'token', verdict };
  // The server has a result for each event. The search for a bad event would only repeat these results.
  const results = status === 400 && (body.rejected ?? body.errors)?.length === count && accepted(body, count);
  if (results) return results;
  if (status < 300) {
    // Events are removed from the queue only if the response has the counts of a gateway.
    return (body.success === true && accepted(body, count)) || unexpected(response);
  }
  if (status === 413) return { kind: 'tooLarge' };
  const kind = /^user_(blocked|rate)/.test(problem.code) ? 'user'
    : settings.includes(status) || status < 400 ? 'configuration'
    : status === 500 ? 'serverFault'
    : status > 500 || later.includes(status) ? 'tryLater' : 'rejected';
  return { kind, problem };
}

/**
 * The meaning of a response that accepts events; null if it is malformed or its counts do not add up.
 * @param {any} body @param {number} count @returns {Meaning | null}
 */
function accepted(body, count) {
  const { accepted, duplicates = 0, rejected = [] } = body;
  if (!isCount(accepted) || !isCount(duplicates) || !Array.isArray(rejected)) return null;
  if (accepted + duplicates + rejected.length !== count) return null;
  /** @type {Map<number, Problem>} */
  const reasons = new Map();
  for (const { index, code, reason } of rejected) {
    if (!isCount(index) || index >= count || reasons.has(index) || typeof code !== 'string') return null;
    reasons.set(index, { code, reason: String(reason ?? '') });
  }
  return { kind: 'accepted', duplicates, rejected: reasons, warning: verdictOf(body.auth_warning) };
}

/** @param {TransportResponse} response @returns {Meaning} */
function unexpected(response) {
  if (/html/i.test(response.header('Content-Type') ?? '') || /^\s*</.test(response.body)) {
    return { kind: 'tryLater', problem: { code: 'page', reason: '' } };
  }
  return { kind: 'serverFault', problem: { code: 'not_understood', reason: '' } };
}

/** @param {any} error @returns {Verdict | null} */
function verdictOf(error) {
  if (!Number.isInteger(error?.error_code)) return null;
  return {
    code: error.error_code, reason: String(error.reason ?? error.error_code), clockSkew: error.clock_skew_seconds ?? null,
    hint: String(error.hint ?? ''),
  };
}

/**
 * Parses an HTTP date. Returns milliseconds since 1970, or null for other text.
 * @param {string | null} text
 */
function instant(text) {
  return (text?.endsWith('GMT') && Date.parse(text)) || null;
}
