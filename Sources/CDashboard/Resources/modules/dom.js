// Elements without markup: every text goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, children);
  return element;
}

/** Characters that change the direction of the text after them, and control characters except the end of a line. */
const unsafe = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A text as it is shown: an id from a client must not change how its surroundings read. */
function shown(text) {
  return String(text).replace(unsafe, "\ufffd");
}

function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(shown(child)));
  }
}

/** An HTML element. Properties starting with `on` are listeners; null and false ones are left out. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Empties an element and puts the children in. */
export function replace(element, ...children) {
  element.replaceChildren();
  put(element, children);
  return element;
}

/** A text of the gateway: what stands between backticks becomes code. */
export function prose(text) {
  return String(text ?? "").split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? h("code", {}, part) : part));
}

let counter = 0;

/** An id that no other element has. */
export function freshID(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** Says a sentence to screen readers. */
export function announce(text) {
  const region = document.getElementById("announcer");
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = text; });
}
