// Formatting of numbers and times. Instants are milliseconds since 1970.

import { preferences } from "./preferences.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export function number(value) {
  return Number.isFinite(value) ? whole.format(value) : "–";
}

export function compact(value) {
  if (!Number.isFinite(value)) return "–";
  return Math.abs(value) < 10_000 ? whole.format(value) : short.format(value);
}

/** Formats a share between 0 and 1 as a percentage. Small shares get more digits. */
export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  return `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)} %`;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** The 12-hour or 24-hour clock, as in the browser's inputs for times. */
const { hourCycle } = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions();

function formatter(options) {
  const zone = preferences.zone === "utc" ? { timeZone: "UTC" } : {};
  return new Intl.DateTimeFormat("en-GB", { ...(options.hour && { hourCycle }), ...options, ...zone });
}

const clockOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const dayOptions = { day: "numeric", month: "short", year: "numeric" };

export function clock(at) {
  return formatter(clockOptions).format(at);
}

export function hourMinute(at) {
  return formatter({ hour: "2-digit", minute: "2-digit" }).format(at);
}

function dayMonth(at) {
  return formatter({ day: "numeric", month: "short" }).format(at);
}

export function dateTime(at) {
  if (!Number.isFinite(at)) return "–";
  return `${formatter(dayOptions).format(at)}, ${clock(at)}`;
}

export function zoneName() {
  if (preferences.zone === "utc") return "UTC";
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
}

export function duration(milliseconds) {
  const value = Math.max(0, milliseconds);
  if (value > 0 && value < 1000) return `${Math.max(1, Math.round(value))} ms`;
  if (value < MINUTE) return `${Math.round(value / 1000)} s`;
  if (value < HOUR) return `${Math.round(value / MINUTE)} min`;
  if (value < 2 * DAY) return `${Math.round(value / HOUR)} h`;
  return `${Math.round(value / DAY)} days`;
}

export function ago(at, now = Date.now()) {
  if (!Number.isFinite(at)) return "never";
  const passed = now - at;
  if (passed < -1000) return `in ${duration(-passed)}`;
  return passed < 5000 ? "just now" : `${duration(passed)} ago`;
}

const utcDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const utcDayLong = new Intl.DateTimeFormat("en-GB", { weekday: "short", ...dayOptions, timeZone: "UTC" });

/** Minutes between two ticks of a time axis, up to half a day. */
const TICK_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720];

/**
 * Returns the ticks of a time axis over buckets that begin at `starts`: at most `most`, each with its text and the
 * index of its bucket. Ticks are at the first bucket of each day in the chosen time zone, and at multiples of one of
 * `TICK_MINUTES` after midnight. With too many days for `most`, only each n-th day has a tick.
 *
 * At a change of daylight saving time, a day may have no midnight, or an hour may occur twice. Local times of ticks
 * never go backwards, so no text appears twice in a day.
 */
export function timeTicks(starts, bucket, most) {
  // The gateway counts days in UTC.
  if (bucket === "day") {
    const every = Math.max(1, Math.ceil(starts.length / most));
    return starts.flatMap((start, index) => (index % every === 0 ? [{ index, text: utcDay.format(start) }] : []));
  }
  const wall = formatter({ year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const wallTime = (at) => {
    const [day, month, year, hour, minute] = wall.format(at).match(/\d+/g).map(Number);
    return { day: (year * 12 + month) * 31 + day, minutes: hour * 60 + minute };
  };
  // In a time zone with a half-hour offset, a bucket of an hour does not begin at a full hour, but contains one.
  const length = bucket === "hour" ? 60 : 1;
  let before = starts.length > 0 ? wallTime(starts[0] - length * MINUTE).day : 0;
  const places = starts.map((start, index) => {
    const { day, minutes } = wallTime(start);
    const place = { index, start, day, minutes, beginsDay: day > before };
    before = day;
    return place;
  });
  const days = places.filter(({ beginsDay }) => beginsDay);
  for (const step of TICK_MINUTES) {
    const found = [];
    for (const place of places) {
      const last = found.at(-1);
      const isLater = !last || place.day > last.day || (place.day === last.day && place.minutes > last.minutes);
      // A day that does not begin at midnight may have a full hour right after its first tick.
      const isNear = last?.beginsDay && place.start - last.start < 0.6 * step * MINUTE;
      if (isLater && (place.beginsDay || (place.minutes % step < length && !isNear))) found.push(place);
    }
    if (found.length <= most) return found.map(({ index, start, beginsDay }) => ({ index, text: beginsDay ? dayMonth(start) : hourMinute(start) }));
  }
  const every = Math.max(1, Math.ceil(days.length / most));
  return days.filter((_, place) => place % every === 0).map(({ index, start }) => ({ index, text: dayMonth(start) }));
}

/** The time span of a bucket, as a heading. */
export function bucketName(start, bucket) {
  if (bucket === "day") return `${utcDayLong.format(start)} (UTC)`;
  const length = bucket === "hour" ? HOUR : MINUTE;
  const day = formatter({ weekday: "short", day: "numeric", month: "short" }).format(start);
  return `${day}, ${hourMinute(start)} to ${hourMinute(start + length)}`;
}

/** The value for an input of type datetime-local. */
export function toInput(at) {
  const offset = preferences.zone === "utc" ? 0 : new Date(at).getTimezoneOffset() * MINUTE;
  return new Date(at - offset).toISOString().slice(0, 16);
}

/** The instant of an input of type datetime-local, or null. */
export function fromInput(text) {
  if (!text) return null;
  const at = Date.parse(preferences.zone === "utc" ? `${text}Z` : text);
  return Number.isFinite(at) ? at : null;
}
