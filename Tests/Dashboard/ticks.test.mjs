// Tests the ticks on the time axis of the dashboard's charts, mostly on days with a daylight saving change (make web).

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";

// Without a package.json, older versions of Node do not load .js files as modules.
const folder = mkdtempSync(join(tmpdir(), "ticks-"));
after(() => rmSync(folder, { recursive: true }));
for (const file of ["format.js", "preferences.js"]) {
  copyFileSync(new URL(`../../Sources/CShims/CDashboard/Resources/modules/${file}`, import.meta.url), join(folder, file));
}
writeFileSync(join(folder, "package.json"), '{"type": "module"}');
// A fixed locale, because the expected texts have a 24-hour clock and English month names.
Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, { construct: (target, [locale, options]) => new target(locale ?? "en-GB", options) });
const { timeTicks } = await import(pathToFileURL(join(folder, "format.js")));

const HOUR = 3_600_000;

/** The texts of at most `most` ticks, for a number of hours from an instant, with a bucket every `minutes`. */
function texts(zone, from, hours, most, minutes = 60) {
  process.env.TZ = zone;
  const starts = Array.from({ length: (hours * 60) / minutes }, (_, index) => Date.parse(from) + index * minutes * 60_000);
  return timeTicks(starts, minutes === 60 ? "hour" : "minute", most).map(({ text }) => text);
}

function count(from, to, step = 1) {
  return Array.from({ length: Math.ceil((to - from) / step) }, (_, index) => `${String(from + index * step).padStart(2, "0")}:00`);
}

// For each zone: the start of the day before the change, and the texts of three days.
const withoutMidnight = [
  ["America/Havana", "2026-03-07T05:00:00Z", ["7 Mar", "8 Mar", "9 Mar"]],
  ["Atlantic/Azores", "2026-03-28T01:00:00Z", ["28 Mar", "29 Mar", "30 Mar"]],
  ["Asia/Beirut", "2026-03-27T22:00:00Z", ["28 Mar", "29 Mar", "30 Mar"]],
  ["Africa/Cairo", "2026-04-22T22:00:00Z", ["23 Apr", "24 Apr", "25 Apr"]],
  ["America/Santiago", "2026-09-05T04:00:00Z", ["5 Sept", "6 Sept", "7 Sept"]],
];
const withTwoMidnights = [
  ["America/Havana", "2026-10-31T04:00:00Z", ["31 Oct", "1 Nov", "2 Nov"]],
  ["Atlantic/Azores", "2026-10-24T00:00:00Z", ["24 Oct", "25 Oct", "26 Oct"]],
];

for (const [zone, from, [first, second, third]] of withoutMidnight) {
  test(`${zone}: a day without midnight has its date at its first hour`, () => {
    assert.deepEqual(texts(zone, from, 71, 100), [first, ...count(1, 24), second, ...count(2, 24), third, ...count(1, 24)]);
    assert.deepEqual(texts(zone, from, 71, 12), [first, ...count(6, 24, 6), second, ...count(6, 24, 6), third, ...count(6, 24, 6)]);
    assert.deepEqual(texts(zone, from, 71, 5), [first, second, third]);
  });

  test(`${zone}: a chart may begin with a day without midnight`, () => {
    assert.deepEqual(texts(zone, new Date(Date.parse(from) + 24 * HOUR).toISOString(), 23, 30), [second, ...count(2, 24)]);
  });
}

for (const [zone, from, [first, second, third]] of withTwoMidnights) {
  test(`${zone}: a day with two midnights has its date once`, () => {
    assert.deepEqual(texts(zone, from, 73, 100), [first, ...count(1, 24), second, ...count(1, 24), third, ...count(1, 24)]);
    assert.deepEqual(texts(zone, from, 73, 5), [first, second, third]);
    assert.deepEqual(texts(zone, new Date(Date.parse(from) + 24 * HOUR).toISOString(), 3, 200, 15).slice(0, 4), [second, "00:15", "00:30", "00:45"]);
  });
}

for (const [zone, from, [first, second]] of [
  ["America/New_York", "2026-10-31T04:00:00Z", ["31 Oct", "1 Nov"]],
  ["Asia/Beirut", "2026-10-23T21:00:00Z", ["24 Oct", "25 Oct"]],
  ["Africa/Cairo", "2026-10-28T21:00:00Z", ["29 Oct", "30 Oct"]],
  ["America/Santiago", "2026-04-04T03:00:00Z", ["4 Apr", "5 Apr"]],
]) {
  test(`${zone}: an hour that occurs twice has one tick`, () => {
    assert.deepEqual(texts(zone, from, 49, 100), [first, ...count(1, 24), second, ...count(1, 24)]);
  });
}

test("a usual day has a tick at midnight and at each step", () => {
  assert.deepEqual(texts("UTC", "2026-07-01T22:00:00Z", 8, 4), ["22:00", "2 Jul", "02:00", "04:00"]);
  assert.deepEqual(texts("Asia/Kolkata", "2026-07-01T16:00:00Z", 5, 10), ["21:30", "22:30", "23:30", "2 Jul", "01:30"]);
  assert.deepEqual(texts("UTC", "2026-07-01T00:00:00Z", 24 * 30, 10).length, 10);
});
