import { Card, letterCount } from "./card.js";
import { add, fill, put, shown } from "./dom.js";
import { View } from "./view.js";
import { between, clock, count, duration, instant, names, perSecond, rowCount, since } from "./format.js";

const $ = (id) => document.getElementById(id);
const cards = new Map();
let paused = false;
let lost = false;
const kept = {}; // what came while the page was paused, by event

const show = { status, latest };
const view = new View(() => {
  for (const type of Object.keys(show)) if (kept[type]) show[type](kept[type]);
});

function status(s) {
  const up = "up " + duration(between(s.started, s.now));
  const about = [s.instance, s.group && "group " + s.group, "version " + s.version, up, "times are UTC"];
  put($("about"), about.filter(Boolean).join(" · "));
  summary(s);
  notices(s);
  for (const r of s.resources) cards.get(r.resource).show(r, s);
  view.show(s.resources, s.now);
  for (const [name, card] of cards) shown(card.root, view.shows(name));
  letters(s);
  members(s);
  dialect(s);
}

// What the headline says of the resources in a state, and how that looks: the worst first.
const verdicts = [
  ["unowned", "without an owner", "bad"],
  ["stalled", "stalled", "bad"],
  ["blocked", "blocked", "bad"],
  ["failing", "failing", "bad"],
  ["incomplete", "incomplete", "bad"],
  ["paused", "paused", "busy"],
  ["resuming", "resuming", "busy"],
  ["unknown", "waiting for the group to assign an owner", "busy"],
  ["first_load", "being loaded for the first time", "busy"],
  ["replaying", "being replayed", "busy"],
  ["behind", "behind", "busy"],
  ["settling_delayed", "published, but settling is delayed", "busy"],
];

// summary says in a sentence how the resources are, and below it what changes every second.
function summary(s) {
  const having = (state) => s.resources.filter((r) => r.state === state).map((r) => r.resource);
  const are = (list) => names(list) + (list.length === 1 ? " is " : " are ");
  const found = verdicts.map(([state, text, how]) => [having(state), text, how]).filter(([list]) => list.length);
  const parts = found.map(([list, text]) => are(list) + text);
  let look = found.length ? found[0][2] : "good";
  const well = having("following");
  if (!parts.length && well.length > 2) parts.push("All " + well.length + " resources are up to date");
  else if (well.length) parts.push(are(well) + "up to date");
  const elsewhere = s.resources.filter((r) => !r.owned && r.owner).map((r) => r.resource);
  const others = elsewhere.length === 1 ? "another instance" : "other instances";
  if (elsewhere.length) parts.push(are(elsewhere) + "owned by " + others);
  const dead = s.resources.reduce((n, r) => n + letterCount(r), 0);
  if (dead) parts.push(rowCount(dead) + " cannot be published");
  if (dead && look === "good") look = "busy";
  let text = parts.join("; ") || "Nothing is enabled";
  if (s.waiting) [text, look] = ["Waiting: " + s.waiting, "bad"];
  put($("headline"), text + ".");
  put($("more"), beside(s));
  $("summary").className = look;
  const trouble = found.filter(([, , how]) => how === "bad").flatMap(([list]) => list);
  const lead = s.waiting ? "Waiting - " : trouble.length ? names(trouble) + " - " : "";
  document.title = lead + "storestream";
}

function beside(s) {
  const parts = [];
  const known = s.resources.filter((r) => r.lag_seconds !== null);
  const last = known.sort((a, b) => b.lag_seconds - a.lag_seconds)[0];
  if (last) parts.push("largest lag: " + last.resource + ", " + duration(last.lag_seconds));
  const inAll = (rate) => s.resources.reduce((n, r) => n + rate(cards.get(r.resource)).perSecond(), 0);
  parts.push(perSecond(inAll((card) => card.rows)) + " rows/s");
  const v = s.service;
  if (v) {
    const allowed = perSecond(v.allowed_per_second) + " allowed";
    parts.push(perSecond(inAll((card) => card.requests)) + " requests/s to the service, " + allowed);
  }
  return parts.join(" · ");
}

function notices(s) {
  const all = [...(s.notices || [])];
  const v = s.service;
  if (v && v.refused_since) {
    const rate = perSecond(v.allowed_per_second) + " of " + perSecond(v.ceiling_per_second);
    const pause = v.refused_until ? " The longest pause ends at " + clock(v.refused_until) + "." : "";
    all.unshift("The service has been refusing requests for their rate since " + since(v.refused_since, s.now) +
      "." + pause + " storestream now sends " + rate + " requests a second. The rate rises again by itself.");
  }
  if (v && Math.abs(v.clock_skew_seconds || 0) >= 5) {
    const way = v.clock_skew_seconds > 0 ? " ahead of" : " behind";
    all.push("The service's clock is " + duration(Math.abs(v.clock_skew_seconds)) + way + " this machine's.");
  }
  if (paused) all.unshift("Page frozen: it shows the state of " + clock(s.now) + ".");
  const list = $("notices");
  if ([...list.children].map((li) => li.textContent).join("\n") !== all.join("\n")) {
    list.replaceChildren();
    for (const text of all) add(list, "li", text);
  }
  shown(list, all.length > 0);
}

function letters(s) {
  const rows = [];
  for (const r of s.resources.filter((r) => view.shows(r.resource))) {
    for (const l of r.dead_letters || []) {
      const field = l.field ? [l.field, "code"] : ["the row", "faint"];
      const ids = l.ids.join(", ") + (l.rows > l.ids.length ? ", ..." : "");
      rows.push([r.resource, field, l.error, [count(l.rows), "n"], ids, since(l.latest, s.now)]);
    }
  }
  if (s.dead_letters_topic) put($("letters-topic"), s.dead_letters_topic);
  shown($("letters"), rows.length > 0);
  fill($("letters"), rows);
}

function members(s) {
  const all = s.members || [];
  shown($("members"), all.length > 1 && !view.chosen);
  fill($("members"), all.map((m) => [
    m.instance + (m.instance === s.instance ? " (this one)" : ""),
    (m.owned || []).join(", ") || ["none (standby)", "faint"],
    (m.enabled || []).join(", "),
  ]));
}

function dialect(s) {
  const all = (s.service && s.service.dialect) || [];
  shown($("dialect"), all.some((p) => p.value || p.evidence) && !view.chosen);
  fill($("dialect"), all.map((p) => [
    p.question,
    p.value || ["not known", "faint"],
    p.set ? "the configuration" : p.evidence || "",
    p.since ? instant(p.since) : "",
  ]));
}

function latest(rows) {
  const row = (u) => (u.gone ? ["deleted", "busy"] : fields(u));
  rows = (rows || []).filter((u) => view.shows(u.resource));
  fill($("latest"), rows.map((u) => [clock(u.at), u.resource, [String(u.id), "n"], row(u)]));
  shown($("nothing"), !rows.length);
  shown($("latest").querySelector("table"), rows.length > 0);
}

function fields(u) {
  const list = document.createElement("span");
  list.className = "fields";
  for (const [name, value] of u.fields || []) {
    const pair = add(list, "span");
    add(pair, "span", name, "faint");
    add(pair, "span", " " + (name.endsWith("_at") ? instant(value) : value), value === "***" ? "faint" : "");
    list.append(" ");
  }
  return list;
}

// note takes what is counted each second, also while the page is paused.
function note(s) {
  for (const r of s.resources) {
    if (!cards.has(r.resource)) cards.set(r.resource, new Card($("cards"), r.resource));
    cards.get(r.resource).note(r, s.now);
  }
}

function receive(event) {
  const what = JSON.parse(event.data);
  kept[event.type] = what;
  if (event.type === "status") note(what);
  if (lost) {
    lost = false;
    document.body.classList.remove("lost");
  }
  if (!paused) show[event.type](what);
}

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").textContent = paused ? "Unfreeze page" : "Freeze page";
  $("pause").setAttribute("aria-pressed", String(paused));
  for (const type of Object.keys(show)) if (kept[type]) show[type](kept[type]);
});

// An answer that is no stream (a proxy's error page) ends an EventSource for good. A broken connection does not.
function connect() {
  const events = new EventSource("events");
  for (const type of Object.keys(show)) events.addEventListener(type, receive);
  events.onerror = () => {
    lost = true;
    document.body.classList.add("lost");
    $("summary").className = "bad";
    put($("headline"), "No connection to storestream: this page is out of date. Trying again.");
    document.title = "No connection - storestream";
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
  };
}

connect();
