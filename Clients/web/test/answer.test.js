// Parsing of responses: their meaning for a batch, Retry-After, the server's time, and back-off.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { delay, network } from '../src/retry.js';
import { answer } from './simulation.js';

for (const [name, status, body, kind] of [
  ['all accepted', 200, { success: true, accepted: 2, duplicates: 0 }, 'accepted'],
  ['duplicates only', 200, { success: true, accepted: 0, duplicates: 2 }, 'accepted'],
  ['an incomplete count', 200, { success: true, accepted: 1 }, 'serverFault'],
  ['a negative count', 200, { success: true, accepted: 3, duplicates: -1 }, 'serverFault'],
  ['an event rejected twice', 200, { success: true, accepted: 0, rejected: [{ index: 0, code: 'a' }, { index: 0, code: 'a' }] }, 'serverFault'],
  ['a rejection with an index out of range', 200, { success: true, accepted: 1, rejected: [{ index: 2, code: 'a' }] }, 'serverFault'],
  ['no `success` member', 200, { accepted: 2 }, 'serverFault'],
  ['an empty 204', 204, '', 'serverFault'],
  ['null', 200, 'null', 'serverFault'],
  ['the login page of a captive portal', 200, '<html>hello</html>', 'tryLater'],
  ['an auth_error', 401, { auth_error: { error_code: 22, reason: 'EXPIRED' } }, 'token'],
  ['an auth_error with another status', 403, { auth_error: { error_code: 21 } }, 'token'],
  ['an auth_error with a code of the wrong type', 401, { auth_error: { error_code: '22' } }, 'configuration'],
  ['an unknown write key', 401, { code: 'invalid_write_key' }, 'configuration'],
  ['a request that is too large', 413, {}, 'tooLarge'],
  ['a rate limit', 429, {}, 'tryLater'],
  ['a blocked user', 403, { code: 'user_blocked' }, 'user'],
  ['a rate-limited user', 429, { code: 'user_rate_limited' }, 'user'],
  ['a bad request', 400, {}, 'rejected'],
  ['all events rejected', 400, { accepted: 0, rejected: [{ index: 0, code: 'a' }, { index: 1, code: 'b' }] }, 'accepted'],
  ['a redirection', 302, {}, 'configuration'],
  ['a server error', 500, {}, 'serverFault'],
  ['insufficient storage', 507, {}, 'tryLater'],
]) {
  test(`${name} (${status}) means ${kind}`, () => assert.equal(answer(status, body, 2).meaning.kind, kind));
}

test('a token that a response repeats is removed from the reported code and reason', () => {
  const echo = { code: 'header.claims.signature', reason: 'Bearer header.claims.signature' };
  const { meaning } = answer(503, echo, 1, {}, 'header.claims.signature');
  assert.deepEqual(meaning.problem, { code: '(token)', reason: 'Bearer (token)' });
});

test('Retry-After is read as seconds and as an HTTP date, and ignored if it is invalid', () => {
  assert.equal(answer(503, {}, 1, { 'Retry-After': '7' }).retryAfter, 7);
  const date = 'Sun, 15 Jun 2025 15:06:40 GMT';
  const later = 'Sun, 15 Jun 2025 15:08:40 GMT';
  assert.equal(answer(503, {}, 1, { 'Retry-After': later, Date: date }).retryAfter, 120);
  assert.equal(answer(503, {}, 1, { 'Retry-After': later }).retryAt, Date.parse(later));
  for (const text of ['-1', 'soon', 'Infinity', '']) assert.equal(answer(503, {}, 1, { 'Retry-After': text }).retryAfter, null);
});

test('the server time is read only from responses of the gateway, not of a proxy', () => {
  const date = { Date: 'Sun, 15 Jun 2025 15:06:40 GMT' };
  assert.equal(answer(200, { success: true, accepted: 1 }, 1, date).serverTime, 1_750_000_000_000);
  assert.equal(answer(401, { auth_error: { error_code: 22, server_time_ms: 5 } }, 1, date).serverTime, 5);
  for (const status of [401, 404, 502, 503]) assert.equal(answer(status, { error: 'proxy' }, 1, date).serverTime, null);
});

test('the back-off grows up to a maximum, with full jitter, and Retry-After is limited to one hour', () => {
  assert.deepEqual([1, 2, 3, 8, 99].map((failure) => delay(network, failure, 1)), [2, 4, 8, 180, 180]);
  assert.equal(delay(network, 3, 0.25), 2);
  assert.equal(delay(network, 1, 0, 30), 30);
  assert.equal(delay(network, 1, 1, 86_400), 3600);
});
