import { Chart } from "./chart.js";
import { add, put, shown } from "./dom.js";
import { Rate, step } from "./rate.js";
import { between, clock, count, duration, instant, names, perSecond, rowCount, since } from "./format.js";

// The word for each state, and its look: good, busy, bad or idle. The colour and the mark only repeat the
// word.
const states = {
  following: ["following", "good"],
  behind: ["behind", "busy"],
  settling_delayed: ["settling delayed", "busy"],
  first_load: ["first load", "busy"],
  replaying: ["replaying", "busy"],
  paused: ["paused", "busy"],
  resuming: ["resuming", "busy"],
  blocked: ["blocked", "bad"],
  failing: ["failing", "bad"],
  incomplete: ["incomplete", "bad"],
  stalled: ["stalled", "bad"],
  unowned: ["no owner", "bad"],
  unreadable: ["watermark unreadable", "bad"],
  unknown: ["not known", "idle"],
};

// What the name of a figure does not say by itself.
const glosses = {
  "Lag": "The time since the start of the last poll that met every change",
  "Settled up to": "The low watermark: no unread row with an earlier updated_at can appear",
  "As of": "The start of the last complete pass",
  "Dead letters": "Rows that storestream cannot publish",
  "Last sweep": "A sweep compares the whole topic with the whole source, and repairs the differences",
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
    this.reason = add(this.root, "p", "", "reason");
    this.remedy = add(this.root, "p", "", "faint remedy");
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
    this.rows = new Rate();
    this.requests = new Rate();
  }

  // note takes the counts of each second, also while the page is paused. They are left out while they are 0.
  note(r, now) {
    const at = Date.parse(now) / 1000;
    this.rows.note(at, r.owned ? r.published || 0 : undefined);
    this.requests.note(at, r.owned ? sent(r.requests || {}) : undefined);
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
    put(this.source, r.source === "rest" ? "REST" : "PostgreSQL");
    put(this.state, word);
    this.state.className = "state " + look;
    put(this.doing, doing(r, s));
    const age = r.since && r.state !== "paused"; // a pause has its time in its reason
    const prefix = age ? "Since " + since(r.since, s.now) + " (" + duration(between(r.since, s.now)) + "): " : "";
    const why = r.why && prefix + r.why;
    put(this.reason, why || "");
    this.reason.className = "reason " + look;
    shown(this.reason, Boolean(why));
    put(this.remedy, r.remedy ? "What to do: " + r.remedy : "");
    shown(this.remedy, Boolean(r.remedy));
    this.progress(r.settling || {}, s.now);
    this.numbers(r, s);
    this.past(this.rows);
  }

  progress({ loads_from: from, loads_at: at, loads_part: blocks }, now) {
    const time = from && at ? Math.min(Math.max(0, between(from, at) / between(from, now)), 1) : undefined;
    const part = blocks || time;
    shown(this.bar, part !== undefined);
    if (part !== undefined) this.bar.value = part;
    const percent = Math.floor(100 * part) + " % of the ";
    const of = time === undefined ? "read up to " : percent + "time from " + instant(from).slice(0, 10) + " to now, at ";
    const byTime = at ? of + instant(at).replace(" 00:00:00", "") : "";
    put(this.load, blocks ? percent + "table's blocks" : byTime);
    shown(this.load, Boolean(blocks || at));
  }

  numbers(r, s) {
    const ago = (time) => time && duration(between(time, s.now)) + " ago";
    const byDay = r.settled && r.source === "rest" ? ", by day" : "";
    this.figure("Lag", r.lag_seconds === null ? "not known" : duration(r.lag_seconds));
    this.figure("Rows a second", r.owned ? perSecond(this.rows.perSecond()) : undefined);
    this.figure("Settled up to", r.settled ? instant(r.settled) : "not yet", (ago(r.settled) || "") + byDay);
    this.figure("As of", r.as_of ? instant(r.as_of) : "not yet", ago(r.as_of));
    this.figure("Rows published", count(r.rows));
    this.figure("Dead letters", count(letterCount(r)), "", letterCount(r) ? "bad" : "");
    const requests = r.requests && r.owned ? perSecond(this.requests.perSecond()) : undefined;
    this.figure("Requests a second", requests, r.requests && answers(r.requests));
    this.figure("Current replay", ...part(r));
    this.figure("Current sweep", ...inHand(r, s.now));
    this.figure("Last sweep", ...lastSweep(r, s.now)); // of before, too: one in hand may never end
    const written = r.written && "wrote at " + since(r.written, s.now);
    this.figure("Owner", r.owner || "none", r.owned ? "this instance" : written);
    const older = (r.privacy || []).length > 1 ? "older rows may remain" : undefined;
    this.figure("Privacy policies", older, "storestream sweep " + r.resource + " replaces them", "busy");
    const unknown = r.unknown_fields && count(r.unknown_fields);
    this.figure("Fields not in the schema", unknown, "not published; names: storestream check --names");
  }

  // past shows what the page has seen of the last hour.
  past({ points, end }) {
    const known = points.filter((n) => n !== null);
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
  if (!r.owned || !r.doing) return "";
  const long = r.doing_since ? between(r.doing_since, s.now) : 0;
  return r.doing + (long >= 10 ? ", for " + duration(long) : "");
}

// letterCount is how many rows of a resource cannot be published.
export function letterCount(r) {
  return (r.dead_letters || []).reduce((n, l) => n + l.rows, 0);
}

function answers(codes) {
  const other = Object.entries(codes)
    .filter(([code, n]) => code !== "200" && n > 0)
    .sort(([a], [b]) => Number(b) - Number(a));
  const said = other.map(([code, n]) => (code === "0" ? "no answer" : code) + ": " + count(n));
  return count(sent(codes)) + " in all" + (said.length ? "; " + said.join(", ") : "");
}

function sent(codes) {
  return Object.values(codes).reduce((sum, n) => sum + n, 0);
}

// part is how far the first of the replays of parts is, and what holds it up.
function part(r) {
  const [p, ...others] = r.parts || [];
  if (!p) return [];
  const rows = p.of ? count(p.rows) + " of at most " + rowCount(p.of) : "not counted yet";
  const waiting = others.length ? count(others.length) + " more waiting" : "";
  const note = [p.failure, waiting].filter(Boolean).join(", ");
  return [p.kind === "retry" ? "looking up dead letters" : rows, note, p.failure ? "bad" : ""];
}

function inHand(r, now) {
  const h = r.sweeping || (r.sweep && { since: r.sweep.at });
  if (!h) return [];
  if (h.error) return ["failed", h.error + (h.next ? "; again at " + since(h.next, now) : ""), "bad"];
  const rows = h.rows ? rowCount(h.rows) + " of the service, " + count(h.of) + " of the topic" : "";
  const failure = r.sweep && r.sweep.failure; // the tries before
  const note = [h.since && "since " + since(h.since, now), rows, failure].filter(Boolean).join(", ");
  return [h.doing || "waiting", note, failure ? "bad" : ""];
}

function lastSweep(r, now) {
  const w = r.swept;
  if (!w) return ["never"];
  const counts = (list) => list.filter(([n]) => n > 0).map(([n, what]) => count(n) + " " + what);
  const found = counts([[w.missing, "missing"], [w.stale, "stale"], [w.extra, "extra"]]);
  const repaired = counts([[w.published, "published"], [w.tombstones, "deleted"]]);
  const when = since(r.last_sweep || w.began, now) + ", " + rowCount(w.source_rows);
  if (!found.length) return w.left ? ["incomplete", when + "; " + w.left, "busy"] : ["no differences", when];
  return [names(found), [when, names(repaired), w.left].filter(Boolean).join("; "), "busy"];
}
