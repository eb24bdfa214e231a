"use strict";

const number = new Intl.NumberFormat("en");

// duration writes seconds as people say them: 0.8 s, 42 s, 3 min 5 s, 2 h 10 min, 4 d 3 h.
function duration(seconds) {
  if (seconds < 10) return seconds.toFixed(1) + " s";
  if (seconds < 60) return Math.round(seconds) + " s";
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[i];
  const rest = Math.floor((seconds % size) / units[i + 1][0]);
  return Math.floor(seconds / size) + " " + name + (rest ? " " + rest + " " + units[i + 1][1] : "");
}

function instant(text) {
  return text ? text.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "not yet";
}

function ago(now, text) {
  return duration(Math.max(0, (Date.parse(now) - Date.parse(text)) / 1000));
}

function add(parent, tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

function cell(row, label, text, className) {
  const td = add(row, "td", undefined, className);
  td.dataset.label = label;
  add(td, "span", text);
  return td;
}

// doing says what a resource does, and what is wrong with it, in words: colour only repeats it.
function doing(row, r, now) {
  const td = add(row, "td");
  td.dataset.label = "Now";
  const box = add(td, "span");
  if (!r.owned) {
    add(box, "span", r.owner ? "polled by " + r.owner : "not polled by this instance", "faint");
    return;
  }
  if (r.error) {
    const since = r.failed_since ? " for " + ago(now, r.failed_since) : "";
    add(box, "span", "failing" + since, "bad");
    add(box, "span", r.error, "reason");
  } else {
    add(box, "span", r.replaying ? (r.doing || "") + ", replaying" : r.doing || "", r.passes > 0 ? "good" : "wait");
  }
  if (r.held) add(box, "span", "settles no further: " + r.held, "reason wait");
}

function show(s) {
  document.getElementById("about").textContent =
    s.instance + (s.group ? ", group " + s.group : "") + ", version " + s.version + ", up " + ago(s.now, s.started) + ", times are UTC";
  notice(s.waiting ? "Waiting: " + s.waiting : "");
  const rows = document.createDocumentFragment();
  for (const r of s.resources) {
    const row = add(rows, "tr");
    const name = add(row, "th", r.name + " ");
    name.scope = "row";
    add(name, "span", r.source, "faint");
    doing(row, r, s.now);
    cell(row, "Lag", r.lag_seconds === undefined ? "not known" : duration(r.lag_seconds), "n");
    cell(row, "Settled to", instant(r.settled));
    cell(row, "As of", instant(r.as_of));
    cell(row, "Rows", number.format(r.rows), "n");
    cell(row, "Rows/s", number.format(Math.round(r.rows_per_second)), "n");
    cell(row, "Dead letters", number.format(r.dead_letters), r.dead_letters ? "n bad" : "n");
  }
  document.getElementById("rows").replaceChildren(rows);
}

function notice(text) {
  const element = document.getElementById("notice");
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}

const events = new EventSource("events");
events.addEventListener("status", (event) => show(JSON.parse(event.data)));
events.onerror = () => notice("No connection to storestream: what is shown is old. Trying again.");
