// Values of all types in the properties of an event (docs/reference/event-format.md).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bench } from './bench.js';

/** Returns the JSON text of the properties that the gateway gets. */
async function sent(properties, record = (client) => client.track('one', properties)) {
  const bench = new Bench();
  const client = bench.client();
  await record(client);
  await client.flush();
  const [{ body }] = bench.gateway.requests;
  return body.slice(body.indexOf('"properties":') + 13, body.lastIndexOf(',"anonymousId"'));
}

const cyclic = { name: 'a' };
cyclic.self = cyclic;
cyclic.list = [cyclic, 1];
const cyclicMap = new Map([['name', 'a']]);
cyclicMap.set('self', cyclicMap);
class Money {
  constructor(amount) { this.amount = amount; }
  get text() { return `${this.amount}`; }
}

const outer = { toJSON: () => ({ inner: outer }) };
const tagged = (tag, members) => Object.defineProperty(members, Symbol.toStringTag, { value: tag });

for (const [name, value, expected] of [
  ['NaN', NaN, 'null'], ['Infinity', Infinity, 'null'], ['-Infinity', -Infinity, 'null'], ['-0', -0, '0'],
  ['a fraction', 10.04, '10.04'], ['an integer above 2^53', 2 ** 53 + 2, '9007199254740994'],
  ['a Date', new Date(Date.UTC(2025, 5, 15, 15, 6, 40, 7)), '"2025-06-15T15:06:40.007Z"'],
  ['a Date of another zone', new Date('2025-06-15T15:06:40.007+05:30'), '"2025-06-15T09:36:40.007Z"'],
  ['an invalid Date', new Date(NaN), 'null'],
  ['a BigInt', 9007199254740993n, '9007199254740993'], ['the least BigInt of 64 bits', -(2n ** 63n), '-9223372036854775808'],
  ['a BigInt of more than 64 bits', 2n ** 64n, '"18446744073709551616"'],
  ['null', null, 'null'], ['text', 'a "b"\u0000\u2028', '"a \\"b\\"\\u0000\u2028"'], ['a boolean', false, 'false'],
  ['a Map', new Map([['a', 1], [2, new Date(0)]]), '{"2":"1970-01-01T00:00:00.000Z","a":1}'],
  ['a Map with keys of the same text', new Map([['1', 'a'], [1, 'b']]), '{"1":"b"}'],
  ['a Set', new Set([1, 'a', new Set([2n])]), '[1,"a",[2]]'],
  ['a Uint8Array', Uint8Array.of(0, 255, 16), '"AP8Q"'], ['a Uint8Array of a part of a buffer', new Uint8Array(Uint8Array.of(1, 2, 3).buffer, 1, 1), '"Ag=="'],
  ['an ArrayBuffer', Uint8Array.of(1, 2, 3).buffer, '"AQID"'], ['a DataView', new DataView(Uint8Array.of(1, 2, 3).buffer, 1), '"AgM="'],
  ['a Float64Array', Float64Array.of(1.5, NaN), '[1.5,null]'], ['a BigInt64Array', BigInt64Array.of(2n ** 60n), '[1152921504606846976]'],
  ['an Int16Array', Int16Array.of(-1, 2), '[-1,2]'], ['an array with holes', [1, , undefined, () => {}, Symbol('a')], '[1,null,null,null,null]'],
  ['an object of a class', new Money(5), '{"amount":5}'], ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  ['an object with toJSON', { toJSON: () => new Date(0) }, '"1970-01-01T00:00:00.000Z"'],
  ['a URL', new URL('https://shop.example/'), '"https://shop.example/"'],
  ['an object with a getter that throws', { get a() { throw new Error('no'); }, b: 1 }, '{"a":null,"b":1}'],
  ['an object whose toJSON throws', { toJSON() { throw new Error('no'); } }, 'null'],
  ['an object whose toJSON returns itself', { a: 1, toJSON() { return this; } }, '{"a":1}'],
  ['an object whose toJSON returns its copy', { a: 1, toJSON() { return { ...this }; } }, '{"a":1}'],
  ['an object whose toJSON returns a container of itself', outer, '{"inner":null}'],
  ['a Number object', new Number(5), '5'], ['a String object', new String('ab'), '"ab"'],
  ['a Boolean object', new Boolean(false), 'false'], ['a BigInt object', Object(2n ** 64n), '"18446744073709551616"'],
  ['an object whose tag ends with Array', tagged('MyArray', { a: 1 }), '{"a":1}'], ['an object whose tag has Set in it', tagged('Settings', { a: 1 }), '{"a":1}'],
  ['an object whose tag begins with DataView', tagged('DataViewModel', { a: 1 }), '{"a":1}'],
  ['names that differ only in a lone surrogate', { '\ud800': 1, '\udbff': 2 }, '{"\ufffd":2}'],
  ['a proxy that was revoked', (() => { const { proxy, revoke } = Proxy.revocable({}, {}); return revoke(), proxy; })(), 'null'],
  ['a cyclic object', cyclic, '{"name":"a","self":null,"list":[null,1]}'], ['a cyclic Map', cyclicMap, '{"name":"a","self":null}'],
  ['the same object twice', [Money, 0].map(() => cyclicMap), '[{"name":"a","self":null},{"name":"a","self":null}]'],
  ['undefined', undefined, undefined], ['a function', () => {}, undefined], ['a symbol', Symbol('a'), undefined],
]) {
  test(`${name} ${expected ? `is sent as ${expected}` : 'is left out'}`, async () => {
    assert.equal(await sent({ value, after: 1 }), expected ? `{"value":${expected},"after":1}` : '{"after":1}');
  });
}

test('properties may be a Map', async () => {
  assert.equal(await sent(new Map([['a', 1n]])), '{"a":1}');
});

test('properties that are undefined or null are left out', async () => {
  for (const none of [undefined, null]) assert.ok(!(await sent(none)).includes('properties'));
});

/** `depth` nested objects or arrays. */
const nested = (depth, around) => Array.from({ length: depth }).reduce((inner) => around(inner), 1);
const depthOf = (value) => (value && typeof value === 'object' ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0);

for (const [name, around] of [
  ['objects', (inner) => ({ inner })], ['arrays', (inner) => [inner]], ['maps', (inner) => new Map([['inner', inner]])],
  ['sets', (inner) => new Set([inner])], ['objects with toJSON', (inner) => ({ toJSON: () => ({ inner }) })],
]) {
  for (const depth of [59, 60, 200, 20_000]) {
    test(`${depth} levels of ${name} are cut at the depth that the gateway reads`, async () => {
      const properties = JSON.parse(await sent({ value: nested(depth, around) }));
      // The gateway reads 64 levels, of which the batch, its array and the event are three.
      assert.ok(depthOf(properties) <= 61, `${depthOf(properties)}`);
      if (depth < 60) assert.equal(depthOf(properties), depth + 1);
    });
  }
}

for (const [name, make] of [
  ['a graph of shared objects', () => { let node = { leaf: 1 }; for (let level = 0; level < 50; level += 1) node = { a: node, b: node }; return node; }],
  ['an array of a billion elements', () => Object.assign([], { length: 1e9 })], ['ten million bytes', () => new Uint8Array(1e7)],
  ['an endless result of toJSON', () => ({ toJSON: () => new Set(Array.from({ length: 1e5 }, (_, index) => index)) })],
]) {
  test(`${name} is rejected as too large without being read completely`, { timeout: 60_000 }, async () => {
    await assert.rejects(new Bench().client().track('one', { value: make() }), { code: 'event_too_large' });
  });
}

test('traits are converted as properties are', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.identify('ada', null, { since: new Date(0), tags: new Set(['a']), age: 42n });
  await client.flush();
  const [event] = bench.gateway.stored.values();
  assert.deepEqual(event.traits, { since: '1970-01-01T00:00:00.000Z', tags: ['a'], age: 42 });
});
