import { Chart } from "./chart.js";
import { add, put, shown } from "./dom.js";
import { between, count, duration, instant, names, perSecond, roughly, since } from "./format.js";

// What a state is called, and how it is to be looked at: good, busy, bad or idle. The word says it; the colour and the mark only repeat it.
const states = {
  following: ["following", "good"],
  behind: ["behind", "busy"],
  held: ["does not settle", "busy"],
  first_load: ["first load", "busy"],
  catching_up: ["catching up", "busy"],
  replaying: ["replaying", "busy"],
  taking_over: ["taking over", "busy"],
  failing: ["failing", "bad"],
  elsewhere: ["polled elsewhere", "idle"],
  nobody: ["polled by nobody", "bad"],
  unknown: ["not known", "idle"],
};

export function mood(state) {
  return (states[state] || ["", "idle"])[1];
}

// Card shows one resource.
export class Card {
  constructor(parent, name) {
    this.root = add(parent, "article");
    this.root.setAttribute("aria-labelledby", "resource-" + name);
    const head = add(this.root, "div", undefined, "head");
    this.title = add(head, "h3", name);
    this.title.id = "resource-" + name;
    this.source = add(head, "span", "", "faint");
    this.state = add(head, "span", "", "state");
    this.doing = add(this.root, "p", "", "doing");
    this.reason = add(this.root, "p", "", "reason bad");
    this.held = add(this.root, "p", "", "reason busy");
    this.bar = add(this.root, "progress");
    this.bar.max = 1;
    this.bar.setAttribute("aria-label", name + ": how far the load has come, by time");
    this.load = add(this.root, "p", "", "faint load");
    this.figures = {};
    this.list = add(this.root, "dl");
    this.caption = add(this.root, "p", "", "faint caption");
    this.chartBox = add(this.root, "div", undefined, "chart");
    this.chartBox.setAttribute("role", "img");
    this.chart = new Chart(this.chartBox);
  }

  figure(name, text, note, className) {
    let f = this.figures[name];
    if (!f) {
      const box = add(this.list, "div");
      add(box, "dt", name);
      const value = add(box, "dd");
      f = this.figures[name] = { box, value: add(value, "span", "", "value"), note: add(value, "span", "", "note faint") };
    }
    shown(f.box, text !== undefined);
    put(f.value, text === undefined ? "" : text);
    put(f.note, note || "");
    f.value.className = "value " + (className || "");
  }

  show(r, s) {
    const [word, look] = states[r.state] || [r.state, "idle"];
    this.root.className = look;
    put(this.source, r.source === "rest" ? "over REST" : "from PostgreSQL");
    put(this.state, word);
    this.state.className = "state " + look;
    put(this.doing, doing(r, s));
    put(this.reason, r.error ? because(r, s.now) : "");
    shown(this.reason, Boolean(r.error));
    put(this.held, r.held ? "Settles no further: " + r.held : "");
    shown(this.held, Boolean(r.held));
    this.progress(r.progress);
    this.numbers(r, s);
  }

  progress(p) {
    shown(this.bar, Boolean(p && p.fraction !== undefined));
    if (p && p.fraction !== undefined) this.bar.value = p.fraction;
    put(this.load, p ? load(p) : "");
    shown(this.load, this.load.textContent !== "");
  }

  numbers(r, s) {
    this.figure("Lag", r.state === "elsewhere" ? undefined : r.lag_seconds === undefined ? "not known" : duration(r.lag_seconds));
    this.figure("Rows a second", r.owned ? perSecond(r.rows_per_second) : undefined);
    this.figure("Settled to", r.settled ? instant(r.settled) : "not yet", r.settled && duration(between(r.settled, s.now)) + " ago" + (r.source === "rest" ? ", by day" : ""));
    this.figure("As of", r.as_of ? instant(r.as_of) : "not yet", r.as_of && duration(between(r.as_of, s.now)) + " ago");
    this.figure("Rows published", count(r.rows));
    this.figure("Dead letters", count(r.dead_letters), "", r.dead_letters ? "bad" : "");
    this.figure("Requests a second", r.requests && r.owned ? perSecond(r.requests.per_second) : undefined, r.requests && answers(r.requests));
    this.figure(r.sweep_in_hand ? "Sweep in hand" : "Last sweep", ...sweep(r, s.now));
    this.figure(r.sweep_in_hand ? "Last sweep" : "Sweep in hand");
    this.figure("Polled by", r.owned || !r.owner ? undefined : r.owner, r.written && "wrote at " + since(r.written, s.now));
    this.figure("Fields not in the schema", r.unknown_fields ? r.unknown_fields.join(", ") : undefined, "left out of what is published");
  }

  // past shows the last hour.
  past(points, end, step) {
    const known = (points || []).filter((n) => n !== null);
    shown(this.chartBox, known.length > 1);
    const text = known.length > 1 ? "Rows a second in the last hour, at most " + perSecond(Math.max(...known)) : "";
    put(this.caption, text);
    shown(this.caption, text !== "");
    this.chartBox.setAttribute("aria-label", text);
    if (known.length > 1) this.chart.show(points, end, step);
  }
}

function doing(r, s) {
  if (r.state === "elsewhere") return "by " + r.owner;
  if (r.state === "unknown") return "which instance has it is not known now";
  if (r.state === "nobody") return "No instance of group " + s.group + " has it: start one, or enable it in all of them.";
  if (!r.doing) return "";
  const long = r.since ? between(r.since, s.now) : 0;
  return r.doing + (long >= 10 ? ", for " + duration(long) : "");
}

function because(r, now) {
  return "Failed since " + since(r.failed_since || r.since, now) + " (" + duration(between(r.failed_since || r.since, now)) + "): " + r.error;
}

// load says how far a load is. It is by time: how many rows a day holds nobody knows beforehand.
function load(p) {
  const parts = [];
  if (p.fraction !== undefined) parts.push(Math.floor(100 * p.fraction) + " % of the time from " + instant(p.from).slice(0, 10) + " to now");
  if (p.at) parts.push("at " + instant(p.at).replace(" 00:00:00", ""));
  if (p.seconds_left !== undefined) parts.push("about " + roughly(p.seconds_left) + " left at this pace");
  return parts.join(", ");
}

function answers(requests) {
  const other = Object.entries(requests.codes || {}).filter(([code, n]) => code !== "200" && n > 0).sort(([a], [b]) => Number(b) - Number(a));
  const said = other.map(([code, n]) => (code === "0" ? "no answer" : code) + ": " + count(n));
  return count(requests.total) + " in all" + (said.length ? "; " + said.join(", ") : "");
}

function inHand(h, now) {
  if (h.error) return ["failed", h.error + (h.next ? "; again at " + since(h.next, now) : ""), "bad"];
  const rows = h.rows ? count(h.rows) + (h.of ? " of about " + count(h.of) : "") + " rows" : "";
  return [h.doing || "asked for", [(h.since || h.asked) && "since " + since(h.since || h.asked, now), rows].filter(Boolean).join(", ")];
}

function sweep(r, now) {
  if (r.sweep_in_hand) return inHand(r.sweep_in_hand, now);
  const w = r.sweep;
  if (!w) return ["never"];
  const found = [[w.missing, "missing"], [w.stale, "stale"], [w.extra, "extra"]].filter(([n]) => n > 0).map(([n, kind]) => count(n) + " " + kind);
  const mended = [[w.published, "published"], [w.tombstones, "taken out"]].filter(([n]) => n > 0).map(([n, what]) => count(n) + " " + what);
  const when = since(w.ended || w.began, now) + ", " + count(w.source_rows) + " rows";
  if (!found.length) return ["no differences", when];
  return [names(found), when + (mended.length ? "; " + names(mended) : "") + (w.left ? "; " + w.left : ""), "busy"];
}

