// Calculations with the analytics' counts.

/** The failures with one code in a bucket or total. */
export function countOf(part, code) {
  const entry = part.codes?.[code];
  return entry ? (entry.rejected ?? 0) + (entry.warned ?? 0) : 0;
}

export function failuresOf(part, codes) {
  return codes.reduce((sum, code) => sum + countOf(part, code), 0);
}

/** The share of failures in verified traffic, 0 to 1; null without traffic. */
export function rateOf(part, codes) {
  const failed = failuresOf(part, codes);
  const checked = (part.accepted ?? 0) + failed;
  return checked === 0 ? null : failed / checked;
}

export function codesIn(data) {
  const seen = new Set();
  for (const part of [data.totals, ...data.buckets]) {
    for (const code of Object.keys(part.codes ?? {})) if (countOf(part, code) > 0) seen.add(Number(code));
  }
  return [...seen].sort((left, right) => left - right);
}

/** A round number that is at least the value and divisible into four grid lines. */
export function ceiling(value) {
  if (value <= 40) return Math.max(4, Math.ceil(value / 4) * 4);
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].find((factor) => factor * power >= value) ?? 10;
  return step * power;
}
