// A chart of failures over time in SVG: bars stacked by code, the failure rate as a line, and markers for
// changes. Below it, a chart of successful traffic with the same time axis. Usable by pointer and keyboard.

import { h, s, replace, announce } from "./dom.js";
import { paint, reason, swatch } from "./codes.js";
import { ceiling, countOf, failuresOf, rateOf } from "./counts.js";
import { MINUTE, HOUR, DAY, number, compact, percent, plural, hourMinute, bucketName, dateTime, timeTicks } from "./format.js";

const LENGTH = { minute: MINUTE, hour: HOUR, day: DAY };
const PLOT = 232;
const BASE = 54;
/** The height of the traffic chart if it is shown alone, because nothing has failed. */
const BASE_ALONE = 180;
const GAP = 34;
/** A drag over less than this part of a bucket counts as a click. */
const BRUSH = 0.6;
// Space for the axis names, the markers, and the total of the highest bar.
const TOP = 48;
/** The y position of the markers. */
const MARK = 24;
// Space for the time labels.
const FOOT = 26;

export class FailureChart {
  #data = null;
  #before = null;
  #codes = [];
  #index = -1;
  #series = -1;
  #width = 0;
  #onDrill;
  #onZoom;
  /** The bucket where the current selection begins; -1 without one. */
  #anchor = -1;
  #pressed = null;

  /** `onDrill(bucket, code | null)` opens the requests of a bar, `onZoom(from, to)` a part of the time. */
  constructor(onDrill, onZoom, signal) {
    this.#onDrill = onDrill;
    this.#onZoom = onZoom;
    this.tip = h("div", { class: "chart-tip", hidden: true });
    this.canvas = h("div", {
      class: "chart-canvas", tabindex: 0, role: "application", "aria-roledescription": "chart", id: "failure-chart",
      "aria-label": "Failures over time", "aria-describedby": "chart-help",
    });
    this.element = h("div", { class: "chart" }, this.canvas, this.tip,
      h("p", { class: "chart-help", id: "chart-help" }, "Hover for numbers, or focus the chart and use the keys: ",
        h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " move between buckets, ", h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"), " between codes, ",
        h("kbd", {}, "Enter"), " shows the requests, ", h("kbd", {}, "Esc"), " returns to the chart. To zoom in, drag across it or hold ", h("kbd", {}, "Shift"), " and press an arrow key."));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("focus", () => {
      if (this.#index < 0 && this.canvas.matches(":focus-visible")) this.#choose(this.#lastBusy(), -1, true);
    });
    this.canvas.addEventListener("blur", () => this.#choose(-1, -1));
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      this.#pressed = event.clientX;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.#pressed !== null && this.#anchor < 0 && Math.abs(event.clientX - this.#pressed) > Math.max(6, this.#geometry().step * BRUSH)) {
        this.#anchor = this.#bucketAt(this.#pressed);
        this.canvas.setPointerCapture(event.pointerId);
      }
      this.#point(event);
    });
    this.canvas.addEventListener("pointerup", () => { this.#pressed = null; });
    this.canvas.addEventListener("pointercancel", () => { this.#pressed = null; this.#brush(-1); });
    this.canvas.addEventListener("pointerleave", (event) => {
      if (!this.tip.contains(event.relatedTarget) && document.activeElement !== this.canvas) this.#choose(-1, -1);
    });
    this.tip.addEventListener("pointerleave", () => { if (document.activeElement !== this.canvas) this.#choose(-1, -1); });
    this.canvas.addEventListener("click", (event) => {
      if (this.#anchor >= 0) return this.#zoom();
      this.#point(event);
      if (this.#index >= 0) this.#drill();
    });
    const observer = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width > 0 && width !== this.#width) {
        this.#width = width;
        this.#draw();
      }
    });
    observer.observe(this.canvas);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  /** Sets new data. `before` has the previous period's buckets, or null; `codes` are the visible codes. */
  show(data, before, codes) {
    const kept = this.#index >= 0 ? this.#data?.buckets[this.#index]?.start_ms : null;
    this.#data = data;
    this.#before = before;
    this.#codes = codes;
    this.#index = kept === null ? -1 : data.buckets.findIndex((bucket) => bucket.start_ms === kept);
    if (this.#series >= codes.length) this.#series = -1;
    if (this.#pressed === null) this.#anchor = -1;
    this.#draw();
  }

  focus() {
    this.canvas.focus();
  }

  #geometry() {
    const left = 44;
    const right = this.#width < 480 ? 38 : 48;
    const inner = Math.max(60, this.#width - left - right);
    const count = Math.max(1, this.#data.buckets.length);
    const plot = this.#quiet ? 0 : PLOT;
    const base = this.#quiet ? BASE_ALONE : BASE;
    const baseTop = this.#quiet ? TOP : TOP + PLOT + GAP;
    return { left, inner, step: inner / count, plot, base, baseTop, height: baseTop + base + FOOT };
  }

  /** Whether no visible code has failures, now or in the previous period. */
  get #quiet() {
    return [...this.#data.buckets, ...(this.#before ?? [])].every((bucket) => failuresOf(bucket, this.#codes) === 0);
  }

  /** The number of complete buckets. The last one is incomplete while its time is running. */
  get #whole() {
    const { buckets, bucket, now_ms: now } = this.#data;
    return buckets.filter(({ start_ms: start }) => start + LENGTH[bucket] <= (now ?? Infinity)).length;
  }

  #draw() {
    if (!this.#data || this.#width === 0) return;
    const { buckets } = this.#data;
    const g = this.#geometry();
    const codes = this.#codes;
    const highest = Math.max(0, ...buckets.map((bucket) => failuresOf(bucket, codes)), ...(this.#before ?? []).map((bucket) => failuresOf(bucket, codes)));
    const top = ceiling(highest);
    const rates = buckets.map((bucket) => rateOf(bucket, codes));
    const rateTop = Math.min(1, ceiling(Math.max(0.04, ...rates.map((rate) => rate ?? 0)) * 100) / 100);
    const y = (value) => TOP + PLOT - (value / top) * PLOT;
    const rateY = (rate) => TOP + PLOT - (rate / rateTop) * PLOT;
    const x = (index) => g.left + index * g.step;
    const bar = Math.max(1, Math.min(40, g.step * (g.step > 6 ? 0.72 : 0.86)));
    const svg = s("svg", { width: this.#width, height: g.height, viewBox: `0 0 ${this.#width} ${g.height}`, "aria-hidden": "true", focusable: "false" });

    for (let line = 0; line <= 4 && g.plot > 0; line += 1) {
      const at = TOP + PLOT - (line / 4) * PLOT;
      svg.append(s("line", { class: line === 0 ? "axis" : "grid", x1: g.left, x2: g.left + g.inner, y1: at, y2: at }),
        s("text", { class: "tick", x: g.left - 8, y: at + 4, "text-anchor": "end" }, compact((top / 4) * line)),
        s("text", { class: "tick rate", x: g.left + g.inner + 8, y: at + 4 }, `${Number((rateTop * 25 * line).toFixed(1))} %`));
    }
    if (g.plot > 0) {
      svg.append(s("text", { class: "axis-name", x: g.left, y: 11 }, "Failed requests"),
        s("text", { class: "axis-name rate", x: this.#width, y: 11, "text-anchor": "end" }, "Failure rate"));
    }

    const bars = s("g", { class: "bars" });
    const totals = s("g", {});
    buckets.forEach((bucket, index) => {
      let foot = TOP + PLOT;
      codes.forEach((code, series) => {
        const count = countOf(bucket, code);
        if (count === 0) return;
        const height = Math.max(1, (count / top) * PLOT);
        bars.append(s("rect", {
          class: "bar", x: x(index) + (g.step - bar) / 2, y: foot - height, width: bar, height, fill: paint(code),
          "data-bucket": index, "data-code": code, "data-series": series,
        }));
        foot -= height;
      });
      const total = failuresOf(bucket, codes);
      if (total > 0 && g.step >= 34) {
        totals.append(s("text", { class: "bar-total", x: x(index) + g.step / 2, y: y(total) - 5, "text-anchor": "middle" }, compact(total)));
      }
    });
    svg.append(bars);

    if (this.#before && g.plot > 0) {
      let path = "";
      this.#before.slice(0, buckets.length).forEach((bucket, index) => {
        const at = y(failuresOf(bucket, codes)).toFixed(1);
        path += `${index === 0 ? "M" : "L"}${x(index).toFixed(1)} ${at}L${x(index + 1).toFixed(1)} ${at}`;
      });
      if (path) svg.append(s("path", { class: "before-halo", d: path }), s("path", { class: "before", d: path }));
    }

    let line = "";
    let open = false;
    if (g.plot > 0) rates.forEach((rate, index) => {
      if (rate === null) { open = false; return; }
      line += `${open ? "L" : "M"}${(x(index) + g.step / 2).toFixed(1)} ${rateY(rate).toFixed(1)}`;
      open = true;
    });
    if (line) svg.append(s("path", { class: "rate-halo", d: line }), s("path", { class: "rate-line", d: line }));
    rates.forEach((rate, index) => {
      const alone = rate !== null && (rates[index - 1] ?? null) === null && (rates[index + 1] ?? null) === null;
      if (alone && g.plot > 0) svg.append(s("circle", { class: "rate-dot", cx: x(index) + g.step / 2, cy: rateY(rate), r: 3 }));
    });

    this.#drawBase(svg, g, x, bar);
    this.#drawUnfinished(svg, g, x);
    this.#drawTime(svg, g, x);
    this.#drawMarkers(svg, g);
    svg.append(totals, s("text", { class: "axis-name", x: g.left, y: g.baseTop - 8 }, "Accepted and anonymous"), s("g", { class: "pointer" }));
    replace(this.canvas, svg);
    this.#mark();
  }

  #drawBase(svg, g, x, bar) {
    const { buckets } = this.#data;
    const highest = ceiling(Math.max(0, ...buckets.map((bucket) => bucket.accepted + bucket.anonymous + bucket.not_judged)));
    const foot = g.baseTop + g.base;
    svg.append(s("line", { class: "axis", x1: g.left, x2: g.left + g.inner, y1: foot, y2: foot }),
      s("text", { class: "tick", x: g.left - 8, y: g.baseTop + 8, "text-anchor": "end" }, compact(highest)));
    buckets.forEach((bucket, index) => {
      let at = foot;
      for (const kind of ["accepted", "anonymous", "not_judged"]) {
        if (!bucket[kind]) continue;
        const height = Math.max(0.75, (bucket[kind] / highest) * g.base);
        at -= height;
        svg.append(s("rect", { class: `base ${kind}`, x: x(index) + (g.step - bar) / 2, y: at, width: bar, height }));
      }
    });
  }

  /** Hatches incomplete buckets: their values still grow and do not indicate a decline. */
  #drawUnfinished(svg, g, x) {
    const whole = this.#whole;
    const count = this.#data.buckets.length - whole;
    if (count === 0) return;
    svg.append(s("rect", { class: "unfinished", x: x(whole), y: g.plot > 0 ? TOP : g.baseTop, width: count * g.step, height: (g.plot > 0 ? g.plot + GAP : 0) + g.base, fill: "url(#paint-unfinished)" }));
  }

  #drawTime(svg, g, x) {
    const { buckets, bucket } = this.#data;
    const most = Math.max(2, Math.floor(g.inner / 84));
    for (const { index, text } of timeTicks(buckets.map(({ start_ms: start }) => start), bucket, most)) {
      // A day's label is centred below its bar. A time's label is at the beginning of its bucket.
      const at = bucket === "day" ? x(index) + g.step / 2 : x(index);
      if (at > g.left + g.inner - 16) break;
      svg.append(s("line", { class: "axis", x1: at, x2: at, y1: g.baseTop + g.base, y2: g.baseTop + g.base + 4 }),
        s("text", { class: "tick time", x: at, y: g.baseTop + g.base + 18, "text-anchor": "middle" }, text));
    }
  }

  #drawMarkers(svg, g) {
    const { from_ms: from, buckets, bucket, markers } = this.#data;
    if (buckets.length === 0) return;
    const first = buckets[0].start_ms ?? from;
    const length = LENGTH[bucket] * buckets.length;
    for (const marker of markers ?? []) {
      const at = g.left + ((marker.at_ms - first) / length) * g.inner;
      if (!(at >= g.left && at <= g.left + g.inner)) continue;
      const kind = String(marker.kind).startsWith("key") ? "key" : marker.kind === "policy" ? "policy" : "enforcement";
      svg.append(s("g", { class: `marker ${kind}` },
        s("line", { x1: at, x2: at, y1: MARK, y2: g.baseTop + g.base }),
        kind === "key" ? s("circle", { cx: at, cy: MARK, r: 4.5 })
          : s("path", { d: kind === "policy" ? `M${at - 4.5} ${MARK - 4.5}h9v9h-9z` : `M${at} ${MARK - 6}l5.5 6-5.5 6-5.5-6z` }),
        s("title", {}, `${dateTime(marker.at_ms)}: ${marker.text}`)));
    }
  }

  #mark() {
    const layer = this.canvas.querySelector(".pointer");
    if (!layer) return;
    layer.replaceChildren();
    for (const chosen of this.canvas.querySelectorAll(".bar.chosen")) chosen.classList.remove("chosen");
    const bucket = this.#data?.buckets[this.#index];
    this.tip.hidden = !bucket;
    if (!bucket) return;
    const g = this.#geometry();
    const left = g.left + this.#index * g.step;
    const height = g.baseTop + g.base - TOP + 2;
    layer.append(s("rect", { class: "crosshair", x: left, y: TOP - 2, width: g.step, height }));
    if (this.#anchor >= 0) {
      const [first, last] = this.#chosen;
      layer.append(s("rect", { class: "brush", x: g.left + first * g.step, y: TOP - 2, width: (last - first + 1) * g.step, height }));
    }
    if (this.#series >= 0) {
      this.canvas.querySelector(`.bar[data-bucket="${this.#index}"][data-series="${this.#series}"]`)?.classList.add("chosen");
    }
    replace(this.tip, this.#breakdown(bucket));
    const width = this.tip.offsetWidth;
    const beside = left + g.step + 10;
    const place = beside + width <= this.#width ? beside : Math.max(0, left - width - 10);
    this.tip.style.left = `${Math.min(place, Math.max(0, this.#width - width))}px`;
  }

  #breakdown(bucket) {
    const codes = this.#codes;
    const failed = failuresOf(bucket, codes);
    const earlier = this.#before?.[this.#index] ?? this.#data.buckets[this.#index - 1] ?? null;
    const rows = codes.map((code, series) => ({ code, series, count: countOf(bucket, code) }))
      .filter((row) => row.count > 0 || row.series === this.#series).sort((one, two) => two.count - one.count);
    const markers = (this.#data.markers ?? []).filter((marker) =>
      marker.at_ms >= bucket.start_ms && marker.at_ms < bucket.start_ms + LENGTH[this.#data.bucket]);
    const change = (code) => {
      if (!earlier) return "";
      const difference = countOf(bucket, code) - countOf(earlier, code);
      return difference === 0 ? "±0" : `${difference > 0 ? "+" : "−"}${compact(Math.abs(difference))}`;
    };
    return [
      h("p", { class: "tip-title" }, bucketName(bucket.start_ms, this.#data.bucket)),
      h("p", { class: "tip-lead" }, h("strong", {}, plural(failed, "failure")), ` · ${percent(rateOf(bucket, codes) ?? NaN)} of verified`),
      rows.length > 0 && h("table", {},
        h("thead", { class: "visually-hidden" }, h("tr", {}, ["Code", "Requests", "Share", "Change"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows.map((row) => h("tr", { class: row.series === this.#series ? "chosen" : undefined },
          h("th", { scope: "row" }, swatch(row.code), h("span", {}, `${row.code} ${reason(row.code)}`)), h("td", {}, number(row.count)),
          h("td", {}, percent(failed ? row.count / failed : 0)),
          h("td", { class: "change" }, change(row.code)))))),
      h("p", { class: "tip-foot" }, `Accepted ${number(bucket.accepted)} · anonymous ${number(bucket.anonymous)}`,
        bucket.not_judged > 0 && ` · not checked ${number(bucket.not_judged)}`),
      this.#index >= this.#whole && h("p", { class: "tip-foot" }, "Incomplete: this period is not over yet."),
      earlier && rows.length > 0 && h("p", { class: "tip-foot" }, this.#before ? "Change: against the period before." : "Change: against the bucket before."),
      markers.map((marker) => h("p", { class: "tip-marker" }, `${hourMinute(marker.at_ms)} ${marker.text}`)),
    ];
  }

  #lastBusy() {
    const { buckets } = this.#data ?? { buckets: [] };
    for (let index = buckets.length - 1; index >= 0; index -= 1) if (failuresOf(buckets[index], this.#codes) > 0) return index;
    return buckets.length - 1;
  }

  #choose(index, series, spoken = false) {
    this.#index = index;
    this.#series = series;
    this.#mark();
    const bucket = this.#data?.buckets[index];
    if (!spoken || !bucket) return;
    const name = bucketName(bucket.start_ms, this.#data.bucket);
    if (series >= 0) {
      const code = this.#codes[series];
      announce(`${name}: ${plural(countOf(bucket, code), "failure")} with ${code} ${reason(code)}.`);
    } else {
      const parts = this.#codes.filter((code) => countOf(bucket, code) > 0).map((code) => `${code} ${reason(code)} ${countOf(bucket, code)}`);
      announce(`${name}: ${plural(failuresOf(bucket, this.#codes), "failure")}, ${percent(rateOf(bucket, this.#codes) ?? NaN)} of verified. ${parts.join(", ")}`);
    }
  }

  /** The bucket at a horizontal position. Out of range outside of the chart. */
  #bucketAt(clientX) {
    const g = this.#geometry();
    return Math.floor((clientX - this.canvas.getBoundingClientRect().left - g.left) / g.step);
  }

  get #chosen() {
    const most = this.#data.buckets.length - 1;
    return [Math.max(0, Math.min(this.#anchor, this.#index)), Math.min(most, Math.max(this.#anchor, this.#index))];
  }

  #brush(anchor) {
    this.#anchor = anchor;
    this.#mark();
  }

  #zoom() {
    const { buckets, bucket } = this.#data;
    const [first, last] = this.#chosen;
    this.#anchor = -1;
    this.#choose(-1, -1);
    this.#onZoom(buckets[first].start_ms, buckets[last].start_ms + LENGTH[bucket]);
  }

  #point(event) {
    if (!this.#data || this.tip.contains(event.target)) return;
    let index = this.#bucketAt(event.clientX);
    if (this.#anchor >= 0) index = Math.max(0, Math.min(this.#data.buckets.length - 1, index));
    if (index < 0 || index >= this.#data.buckets.length) {
      if (document.activeElement !== this.canvas) this.#choose(-1, -1);
      return;
    }
    const series = event.target.dataset?.bucket === String(index) ? Number(event.target.dataset.series) : -1;
    if (index !== this.#index || series !== this.#series) this.#choose(index, series);
  }

  #key(event) {
    const buckets = this.#data?.buckets.length ?? 0;
    if (buckets === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const bounded = (index) => Math.min(buckets - 1, Math.max(0, index));
    const here = this.#index < 0 ? this.#lastBusy() : this.#index;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (!event.shiftKey) this.#anchor = -1;
      else if (this.#anchor < 0) this.#anchor = here;
    }
    switch (event.key) {
      case "ArrowLeft": this.#choose(bounded(here - 1), this.#series, true); break;
      case "ArrowRight": this.#choose(bounded(here + 1), this.#series, true); break;
      case "Home": this.#choose(0, this.#series, true); break;
      case "End": this.#choose(buckets - 1, this.#series, true); break;
      case "ArrowUp": this.#choose(here, Math.min(this.#codes.length - 1, this.#series + 1), true); break;
      case "ArrowDown": this.#choose(here, Math.max(-1, this.#series - 1), true); break;
      case "Enter": case " ":
        if (this.#anchor >= 0 && this.#anchor !== here) this.#zoom();
        else { this.#choose(here, this.#series); this.#drill(); }
        break;
      case "Escape":
        if (this.#anchor >= 0) this.#brush(-1);
        else if (this.#series >= 0) this.#choose(here, -1, true);
        else if (this.#index >= 0) this.#choose(-1, -1);
        else return;
        break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  #drill() {
    const bucket = this.#data.buckets[this.#index];
    if (!bucket) return;
    this.#onDrill({ from: bucket.start_ms, to: bucket.start_ms + LENGTH[this.#data.bucket] },
      this.#series >= 0 ? this.#codes[this.#series] : null);
  }
}
