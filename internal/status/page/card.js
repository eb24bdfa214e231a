import { Chart } from "./chart.js";
import { add, put, shown } from "./dom.js";
import { between, clock, count, duration, instant, names, perSecond, roughly, rowCount, since } from "./format.js";

// The word for each state, and its look: good, busy, bad or idle. The colour and the mark only repeat the
// word.
const states = {
  following: ["following", "good"],
  behind: ["behind", "busy"],
  settling_delayed: ["does not settle", "busy"],
  first_load: ["first load", "busy"],
  catching_up: ["catching up", "busy"],
  replaying: ["replaying", "busy"],
  taking_over: ["taking over", "busy"],
  failing: ["failing", "bad"],
  elsewhere: ["polled elsewhere", "idle"],
  stalled: ["stalled", "bad"],
  nobody: ["polled by nobody", "bad"],
  unknown: ["not known", "idle"],
};

// What the name of a figure does not say by itself.
const glosses = {
  "Lag": "The time since the last poll that met every change began",
  "Settled to": "No row with an earlier updated_at can still appear",
  "As of": "When the last complete pass over the source began",
  "Dead letters": "Rows that cannot be published as they stand",
  "Last sweep": "A sweep compares the whole topic with the whole source and repairs what differs",
};

// Card shows one resource.
export class Card {
  constructor(parent, name) {
    this.root = add(parent, "article");
    this.root.setAttribute("aria-labelledby", "resource-" + name);
    const head = add(this.root, "div", undefined, "head");
    this.title = add(head, "h3");
    add(this.title, "a", name).href = "#" + name; // shows it alone
    this.title.id = "resource-" + name;
    this.source = add(head, "span", "", "faint");
    this.state = add(head, "span", "", "state");
    this.doing = add(this.root, "p", "", "doing");
    this.reason = add(this.root, "p", "", "reason bad");
    this.delayed = add(this.root, "p", "", "reason busy");
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
      const term = add(box, "dt", name);
      if (glosses[name]) term.title = glosses[name];
      const value = add(box, "dd");
      f = { box, value: add(value, "span", "", "value"), note: add(value, "span", "", "note faint") };
      this.figures[name] = f;
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
    put(this.delayed, r.settling_delayed ? "Settled stands still" + standing(r.settling_delayed_since, s.now) + ": " + r.settling_delayed : "");
    shown(this.delayed, Boolean(r.settling_delayed));
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
    const lag = r.lag_seconds === undefined ? "not known" : duration(r.lag_seconds);
    const ago = (time) => time && duration(between(time, s.now)) + " ago";
    const byDay = r.settled && r.source === "rest" ? ", by day" : "";
    this.figure("Lag", r.state === "elsewhere" ? undefined : lag);
    this.figure("Rows a second", r.owned ? perSecond(r.rows_per_second) : undefined);
    this.figure("Settled to", r.settled ? instant(r.settled) : "not yet", (ago(r.settled) || "") + byDay);
    this.figure("As of", r.as_of ? instant(r.as_of) : "not yet", ago(r.as_of));
    this.figure("Rows published", count(r.rows));
    this.figure("Dead letters", count(r.dead_letters), "", r.dead_letters ? "bad" : "");
    const requests = r.requests && r.owned ? perSecond(r.requests.per_second) : undefined;
    this.figure("Requests a second", requests, r.requests && answers(r.requests));
    this.figure("Current sweep", ...(r.sweep_in_hand ? inHand(r.sweep_in_hand, s.now) : []));
    this.figure("Last sweep", ...lastSweep(r.sweep, s.now)); // of before, too: one in hand may never end
    const written = r.written && "wrote at " + since(r.written, s.now);
    this.figure("Polled by", r.owned || !r.owner ? undefined : r.owner, written);
    const older = r.other_policies ? "older rows may remain" : undefined;
    this.figure("Policies for fields", older, "storestream sweep " + r.name, "busy");
    this.figure("Fields not in the schema", r.unknown_fields && r.unknown_fields.join(", "), "not published");
  }

  // past shows the last hour.
  past(points, end, step) {
    const known = (points || []).filter((n) => n !== null);
    shown(this.chartBox, known.length > 1);
    let text = "";
    if (known.length > 1) {
      const most = perSecond(Math.max(...known));
      const from = end - (points.length - points.findIndex((n) => n !== null)) * step;
      const when = end - from > 3500 ? "in the last hour" : "since " + clock(new Date(1000 * from).toISOString());
      text = "Rows a second " + when + ", at most " + most + ", log scale";
    }
    put(this.caption, text);
    shown(this.caption, text !== "");
    this.chartBox.setAttribute("aria-label", text);
    if (known.length > 1) this.chart.show(points, end, step);
  }
}

function doing(r, s) {
  if (r.state === "elsewhere") return "by " + r.owner;
  if (r.state === "stalled") {
    const wrote = r.written ? "nothing was written" + standing(r.written, s.now) : "nothing was written yet";
    return r.owner + " has it, according to the consumer group, and " + wrote + ": is it alive? " +
      "`storestream watermark list` says what it is refused, its log the rest.";
  }
  if (r.state === "unknown") return "which instance has it is not known now";
  if (r.state === "nobody") {
    return "No instance of group " + s.group + " has it: start one, or enable it in all of them.";
  }
  if (!r.doing) return "";
  const long = r.since ? between(r.since, s.now) : 0;
  return r.doing + (long >= 10 ? ", for " + duration(long) : "");
}

function because(r, now) {
  const how = r.owned ? "Failed" : "Blocked or failing at " + (r.owner || "its last owner");
  return how + standing(r.failed_since || r.since, now) + ": " + r.error;
}

// standing says since when and for how long.
function standing(from, now) {
  return from ? " since " + since(from, now) + " (" + duration(between(from, now)) + ")" : "";
}

// load says how far a load is, by time: how many rows a day holds is not known beforehand.
function load(p) {
  const parts = [];
  if (p.fraction !== undefined) {
    const day = instant(p.from).slice(0, 10);
    parts.push(Math.floor(100 * p.fraction) + " % of the time from " + day + " to now");
  }
  if (p.at) parts.push("at " + instant(p.at).replace(" 00:00:00", ""));
  if (p.seconds_left !== undefined) parts.push("about " + roughly(p.seconds_left) + " left at this pace");
  return parts.join(", ");
}

function answers(requests) {
  const other = Object.entries(requests.codes || {})
    .filter(([code, n]) => code !== "200" && n > 0)
    .sort(([a], [b]) => Number(b) - Number(a));
  const said = other.map(([code, n]) => (code === "0" ? "no answer" : code) + ": " + count(n));
  return count(requests.total) + " in all" + (said.length ? "; " + said.join(", ") : "");
}

function inHand(h, now) {
  if (h.error) return ["failed", h.error + (h.next ? "; again at " + since(h.next, now) : ""), "bad"];
  const rows = h.rows ? (h.of ? count(h.rows) + " of about " + rowCount(h.of) : rowCount(h.rows)) : "";
  const from = h.since || h.asked;
  return [h.doing || "waiting", [from && "since " + since(from, now), rows].filter(Boolean).join(", ")];
}

// cameTo says what a sweep found and what it repaired.
export function cameTo(w) {
  const counts = (list) => list.filter(([n]) => n > 0).map(([n, what]) => count(n) + " " + what);
  return {
    found: counts([[w.missing, "missing"], [w.stale, "stale"], [w.extra, "extra"]]),
    repaired: counts([[w.published, "published"], [w.tombstones, "deleted"]]),
  };
}

function lastSweep(w, now) {
  if (!w) return ["never"];
  const { found, repaired } = cameTo(w);
  const when = since(w.ended || w.began, now) + ", " + rowCount(w.source_rows);
  if (!found.length) return ["no differences", when];
  return [names(found), [when, names(repaired), w.left].filter(Boolean).join("; "), "busy"];
}

