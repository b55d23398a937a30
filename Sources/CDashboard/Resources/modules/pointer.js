// Where in a JSON text something stands, so that a problem can be shown at its place.

/** The start and end of the value that a JSON pointer (RFC 6901) names; null when the text has none. */
export function locate(text, pointer) {
  const tokens = pointer.split("/").slice(1).map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  let at = 0;
  const space = () => { while (/\s/.test(text[at] ?? "")) at += 1; };
  const string = () => {
    const start = at;
    at += 1;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    at += 1;
    return JSON.parse(text.slice(start, at));
  };

  /** Reads the value at `at`; `wanted` are the tokens that lead into it, null when it is not on the way. */
  const value = (wanted) => {
    space();
    const start = at;
    let found = null;
    const inside = (token) => (wanted?.length > 0 && wanted[0] === token ? wanted.slice(1) : null);
    if (text[at] === "{" || text[at] === "[") {
      const list = text[at] === "[";
      const end = list ? "]" : "}";
      at += 1;
      space();
      for (let index = 0; text[at] !== end; index += 1) {
        let token = String(index);
        if (!list) { token = string(); space(); at += 1; }
        found = value(inside(token)) ?? found;
        space();
        if (text[at] === ",") at += 1;
        space();
        if (at >= text.length) return found;
      }
      at += 1;
    } else if (text[at] === '"') string();
    else while (at < text.length && !/[\s,\]}]/.test(text[at])) at += 1;
    return wanted?.length === 0 ? { start, end: at } : found;
  };

  try {
    return value(tokens);
  } catch {
    return null;
  }
}

/** A place in a text as people count: from 1. */
export function lineOf(text, at) {
  return text.slice(0, at).split("\n").length;
}
