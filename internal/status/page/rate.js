export const step = 10; // seconds over which a rate is measured, and from one point to the next
const most = 360; // points: an hour

// Rate is how fast a count grows, from what this page has seen of it since it was opened. The instance keeps
// no past. Prometheus does, if it scrapes /metrics.
export class Rate {
  constructor() {
    this.seen = []; // of the last seconds: [time in seconds, count], the oldest first
    this.points = []; // rates, the oldest first; null: not known
    this.end = 0; // the time of the last point
  }

  // note takes the count at a time. undefined: it is not known. A smaller count is another process's.
  note(at, n) {
    const last = this.seen.at(-1);
    if (n === undefined || (last && (n < last[1] || at - last[0] > step))) this.seen = [];
    if (n !== undefined) this.seen.push([at, n]);
    while (this.seen.length > 1 && at - this.seen[1][0] >= step) this.seen.shift();
    this.end ||= at;
    for (; at - this.end >= step; this.end += step) {
      this.points.push(at - this.end < 2 * step && this.seen.length > 1 ? this.perSecond() : null);
    }
    this.points = this.points.slice(-most);
  }

  perSecond() {
    if (this.seen.length < 2) return 0;
    const [first, last] = [this.seen[0], this.seen.at(-1)];
    return (last[1] - first[1]) / (last[0] - first[0]);
  }
}
