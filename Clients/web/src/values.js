/** Levels of objects and arrays in a value. The gateway reads 64 levels of a request: three are around the value. */
const maximumDepth = 60;

/**
 * Returns the JSON of any value, by the table in docs/value-types.md; undefined if the value is left out.
 *
 * Throws only if the text gets longer than `room`. A getter or a `toJSON` that throws gives null.
 *
 * @param {unknown} value @param {number} room Characters of the text without names and punctuation.
 * @returns {string | undefined}
 */
export function toJSON(value, room) {
  /** @param {() => any} read @param {object[]} path The objects around it. @returns {string | undefined} */
  const write = (read, path) => {
    try {
      const value = read();
      if ((room -= 1) < 0) throw room;
      if (value && typeof value === 'object') {
        return path.includes(value) || path.length >= maximumDepth ? 'null' : compound(value, [...path, value]);
      }
      // The gateway has 64 bits for an integer.
      const text = typeof value !== 'bigint' ? JSON.stringify(value)
        : BigInt.asIntN(64, value) === value ? `${value}` : `"${value}"`;
      room -= text?.length ?? 0;
      return text;
    } catch (error) {
      if (room < 0) throw error;
      return 'null';
    }
  };
  /** @param {any} value @param {object[]} path @returns {string | undefined} */
  const compound = (value, path) => {
    // `instanceof` is false for a value of another frame.
    const type = Object.prototype.toString.call(value).slice(8, -1);
    if (/^(Uint8|ArrayB|DataV)/.test(type)) {
      if ((room -= value.byteLength) < 0) throw room;
      return `"${btoa(String.fromCharCode(...new Uint8Array(value.buffer ?? value, value.byteOffset, value.byteLength)))}"`;
    }
    if (typeof value.toJSON === 'function') return write(() => value.toJSON(), path);
    if (/Set|Array/.test(type)) {
      const parts = [];
      for (const one of value) parts.push(write(() => one, path) ?? 'null');
      return `[${parts}]`;
    }
    // Two keys of a map may have the same text. The gateway rejects an object with two members of one name.
    const members = type === 'Map' ? Object.fromEntries(value) : value;
    const parts = [];
    for (const name of Object.keys(members)) {
      const text = write(() => members[name], path);
      if (text) parts.push(`${JSON.stringify(name)}:${text}`);
    }
    return `{${parts}}`;
  };
  return write(() => value, []);
}
