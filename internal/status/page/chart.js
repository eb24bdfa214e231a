// Chart is rows a second of one resource, as far as the page has seen the last hour. Its scale is a logarithm
// that has a 0, so that it shows both a first load and a quiet night.
export class Chart {
  constructor(box) {
    this.box = box;
    this.data = null;
    new ResizeObserver(() => this.resize()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  // show takes the points, oldest first (null: not known), the time of the last one in seconds, and the
  // seconds between two. A young page gets a narrower window: in an hour its few points would be a stroke
  // at the edge.
  show(points, end, step) {
    const known = points.length - points.findIndex((n) => n !== null);
    const windows = [12, 24, 60].map((minutes) => (minutes * 60) / step);
    const slots = windows.find((n) => n >= known) || 3600 / step;
    const padded = Array(Math.max(0, slots - points.length)).fill(null).concat(points).slice(-slots);
    this.data = [padded.map((_, i) => end - (padded.length - 1 - i) * step), padded];
    if (this.plot) this.plot.setData(this.data);
    else this.draw();
  }

  resize() {
    const width = this.box.clientWidth;
    if (this.plot && width > 0) this.plot.setSize({ width, height });
  }

  draw() {
    if (!this.data || this.box.clientWidth === 0) return;
    if (this.plot) this.plot.destroy();
    const style = getComputedStyle(this.box);
    this.plot = new uPlot(options(this.box.clientWidth, style), this.data, this.box);
  }
}

const height = 96;

function options(width, style) {
  const axis = {
    stroke: style.columnRuleColor,
    grid: { stroke: style.borderTopColor, width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const ago = (u, splits) => splits.map((t) => label(u.scales.x.max - t));
  const short = (_, splits) => splits.map(abbreviated);
  return {
    width,
    height,
    padding: [6, 14, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true },
      y: { distr: 4, range: (_, _low, high) => [0, Math.max(10, (high || 0) * 1.15)] },
    },
    axes: [
      { ...axis, size: 20, gap: 2, splits: (u) => quarters(u.scales.x), values: ago },
      { ...axis, size: 34, gap: 3, splits: (u) => powers(u.scales.y.max), filter: (_, all) => all, values: short },
    ],
    series: [
      {},
      { stroke: style.color, width: 1.5, fill: style.caretColor, points: { show: false }, spanGaps: false },
    ],
  };
}

function quarters(x) {
  const quarter = Math.round((x.max - x.min) / 240) * 60; // the first point is one step late
  return [3, 2, 1, 0].map((n) => x.max - n * quarter);
}

function label(ago) {
  const minutes = Math.round(ago / 60);
  return minutes === 0 ? "now" : "-" + minutes + " min";
}

function powers(max) {
  const all = [0];
  for (let n = max < 50 ? 1 : 10; n <= max; n *= 10) all.push(n); // lines near 0 would lie on each other
  if (all.length <= 5) return all;
  return all.filter((n, i) => n === 0 || (all.length - 1 - i) % 2 === 0);
}

function abbreviated(n) {
  return n >= 1e6 ? n / 1e6 + "M" : n >= 1e3 ? n / 1e3 + "k" : String(n);
}
