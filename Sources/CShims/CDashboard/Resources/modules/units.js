// Durations and sizes as numbers with units, for display and input.

import { h } from "./dom.js";
import { number } from "./format.js";
import { select } from "./ui.js";

const durations = [["seconds", 1], ["minutes", 60], ["hours", 3_600], ["days", 86_400]];
const sizes = [["bytes", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]];
const binary = [["MiB", 1_048_576], ["GiB", 1_073_741_824]];

/** The largest unit of which the value is a whole number, and that number. */
function inUnits(value, units) {
  const [name, size] = units.findLast(([, each]) => value !== 0 && value % each === 0) ?? units[0];
  return { name, size, count: value / size };
}

function spoken(value, units) {
  const { name, count } = inUnits(value, units);
  return `${number(count)} ${count === 1 && name.endsWith("s") ? name.slice(0, -1) : name}`;
}

/** A number of seconds in words. */
export function seconds(value) {
  return spoken(value, durations);
}

/** A setting's value with the unit from the end of its name. */
export function settingText(name, value) {
  const count = Number(value);
  if (value === null || value === "" || count === 0 || !Number.isFinite(count)) return value;
  if (name.endsWith("-seconds")) return seconds(count);
  if (name.endsWith("-hours")) return seconds(count * 3_600);
  if (name.endsWith("-bytes")) return spoken(count, count !== 0 && count % 1_048_576 === 0 ? binary : sizes);
  return value;
}

/**
 * An input for a number with a unit. `value` and the result of `read` are in the smallest unit; null means no
 * limit. `input` is for a labelled field, followed by `unit`.
 */
function quantity(units, value, { label, shown, ...rest }) {
  const now = value === null ? { name: shown, count: "" } : inUnits(value, units);
  const input = h("input", { type: "number", min: 0, step: "any", value: now.count, ...rest });
  const unit = select(units.map(([name]) => [name, name]), now.name, null, { "aria-label": `${label}: unit`, disabled: rest.disabled });
  return {
    input, unit,
    read: () => (input.value === "" ? null : Math.round(Number(input.value) * units.find(([name]) => name === unit.value)[1])),
  };
}

export function durationInput(value, options) {
  return quantity(durations, value, { shown: "hours", ...options });
}

export function sizeInput(value, options) {
  return quantity(sizes, value, { shown: "GB", ...options });
}
