/** The deepest level of objects and arrays in a value. The gateway reads 64 levels; three are around the value. */
const maximumDepth = 60;

/**
 * Returns the JSON of any value, by the table in docs/reference/event-format.md; undefined if the value is left out.
 *
 * Throws only if the value exceeds `room`. A getter or a `toJSON` that throws gives null.
 *
 * @param {unknown} value @param {number} room The maximum of characters and values, without names and punctuation.
 * @returns {string | undefined}
 */
export function toJSON(value, room) {
  /**
   * @param {() => any} read @param {object[]} path The objects around the value. @param {number} depth Their levels.
   * @param {Function} [said] The `toJSON` that returned the value. As in `JSON.stringify`, it is not called again.
   * @returns {string | undefined}
   */
  const write = (read, path, depth, said) => {
    try {
      const value = read();
      if ((room -= 1) < 0) throw room;
      if (value && typeof value === 'object') {
        const isAround = path.includes(value) && !(said && path.at(-1) === value);
        return isAround || depth >= maximumDepth ? 'null' : compound(value, [...path, value], depth, said);
      }
      // The gateway reads integers of up to 64 bits.
      const text = typeof value !== 'bigint' ? JSON.stringify(value)
        : BigInt.asIntN(64, value) === value ? `${value}` : `"${value}"`;
      room -= text?.length ?? 0;
      return text;
    } catch (error) {
      if (room < 0) throw error;
      return 'null';
    }
  };
  /** @param {any} value @param {object[]} path @param {number} depth @param {Function} [said] @returns {string | undefined} */
  const compound = (value, path, depth, said) => {
    // `instanceof` is false for a value of another frame.
    const type = Object.prototype.toString.call(value).slice(8, -1);
    if (/^(Uint8.*Array|ArrayBuffer|DataView)$/.test(type)) {
      if ((room -= value.byteLength) < 0) throw room;
      return `"${btoa(String.fromCharCode(...new Uint8Array(value.buffer ?? value, value.byteOffset, value.byteLength)))}"`;
    }
    const say = value.toJSON;
    if (typeof say === 'function' && say !== said) return write(() => value.toJSON(), path, depth, say);
    if (/^(Number|String|Boolean|BigInt)$/.test(type)) return write(() => value.valueOf(), path, depth);
    depth += 1;
    if (/^Set$|Array$/.test(type) && value[Symbol.iterator]) {
      const parts = [];
      for (const one of value) parts.push(write(() => one, path, depth) ?? 'null');
      return `[${parts}]`;
    }
    // Keys of a map may have equal texts. The gateway rejects an object with duplicate members.
    const members = type === 'Map' ? Object.fromEntries(value) : value;
    /** @type {Record<string, string>} */
    const parts = {};
    for (const name of Object.keys(members)) {
      const text = write(() => members[name], path, depth);
      if (text) parts[wellFormed(JSON.stringify(name))] = text;
    }
    return `{${Object.entries(parts).map(([name, text]) => `${name}:${text}`)}}`;
  };
  return write(() => value, [], 0);
}

/**
 * Replaces an unpaired surrogate, such as half of a cut emoji, as the gateway does. A receiver may
 * reject JSON that contains it (RFC 8259, section 8.2).
 * @param {string} json
 */
export const wellFormed = (json) => json.replace(/\\(ud[89a-f]..|.)/g, (escape, code) => (code[1] ? '\ufffd' : escape));
