// Full-text search over search.json. Prose comes before symbols of the libraries.
// An entry has the title t, the page p, the address u and, for prose, the text x of its section. c marks pages of contributors.
const STOP_WORDS = new Set("a an and are can do does for how i if in is it my of on or the to what when where which with".split(" "));
// Words that readers use, and the words of the pages.
const SYNONYMS = { nodejs: "node", js: "javascript", docker: "container", postgres: "postgresql", k8s: "kubernetes", ttl: "lifetime", jwt: "token" };

function wordsOf(text) {
  const words = text.toLowerCase().split(/[^\p{L}\p{N}_.-]+/u).map((word) => word.replace(/^[.-]+|[.-]+$/g, "")).filter(Boolean);
  const wanted = words.filter((word) => !STOP_WORDS.has(word));
  return (wanted.length ? wanted : words).map((word) => SYNONYMS[word] ?? (word.length > 4 ? word.replace(/s$/, "") : word));
}

/// The points of an entry, and the number of words that it lacks.
function rank(entry, patterns, phrase) {
  entry.lower ??= [entry.t, entry.p, entry.x ?? ""].map((text) => text.toLowerCase());
  const [title, page, text] = entry.lower;
  let points = entry.c ? -3 : 0, missing = 0;
  for (const { start, whole } of patterns) {
    if (start.test(title)) points += whole.test(title) ? 10 : 7;
    else if (start.test(page)) points += 4;
    else if (start.test(text)) points += 1 + Math.min(text.match(new RegExp(start, "gu")).length, 4) / 2;
    else missing++;
  }
  if (patterns.length > 1 && (title.includes(phrase) || text.includes(phrase))) points += 5;
  return { entry, points, missing };
}

/// The best entries for a text: prose, then symbols.
function search(entries, text) {
  const words = wordsOf(text);
  if (words.length === 0) return [];
  const patterns = words.map((word) => {
    const escaped = word.replace(/[^\p{L}\p{N}_]/gu, "\\$&");
    return { start: new RegExp(`(?<![\\p{L}\\p{N}])${escaped}`, "u"), whole: new RegExp(`(?<![\\p{L}\\p{N}])${escaped}s?(?![\\p{L}\\p{N}])`, "u") };
  });
  const order = (a, b) => a.missing - b.missing || b.points - a.points || a.entry.t.length - b.entry.t.length;
  const found = entries.map((entry) => rank(entry, patterns, words.join(" "))).filter((one) => one.missing < words.length);
  const prose = found.filter((one) => one.entry.x !== undefined).sort(order);
  const symbols = found.filter((one) => one.entry.x === undefined && one.missing === 0).sort(order);
  return [...prose.filter((one) => one.missing === prose[0].missing).slice(0, 12), ...symbols.slice(0, 12)].map((one) => one.entry);
}

/// A part of the entry's text around the first word that was found.
function excerpt(entry, text) {
  const place = wordsOf(text).map((word) => (entry.x ?? "").toLowerCase().indexOf(word)).filter((at) => at >= 0);
  const first = place.length ? Math.min(...place) : 0;
  const from = first > 40 ? entry.x.indexOf(" ", first - 40) + 1 : 0;
  return (entry.x ?? "").slice(from, from + 140);
}
