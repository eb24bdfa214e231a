import { add, put, shown } from "./dom.js";
import { between, duration, instant, since } from "./format.js";

const weeks = 6; // that the calendar shows, this one last
const dayLength = 86400000; // milliseconds

// Calendar shows what of a resource is settled and what is open: in words, and over REST as a calendar of the
// last weeks, which says nothing that the words do not.
export class Calendar {
  constructor(grid, list) {
    this.grid = grid;
    this.list = list;
    this.drawn = "";
  }

  // show takes a resource and the time.
  show(r, now) {
    const s = { settled: r.settled, ...r.settling };
    const lines = r.source === "rest" ? inDays(s, r, now) : inTime(s, r, now);
    while (this.list.children.length > lines.length) this.list.lastChild.remove();
    lines.forEach(([state, what, so], i) => {
      const line = this.list.children[i] || newLine(this.list);
      const [mark, text] = line.children;
      mark.className = "mark " + state;
      put(text.children[0], what);
      put(text.children[1], so);
    });
    shown(this.grid, Boolean(s.days));
    if (s.days) this.draw(s, now.slice(0, 10));
  }

  draw(s, today) {
    const key = JSON.stringify([s.settled, s.days, today]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.grid.replaceChildren();
    for (const name of ["", "Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"]) add(this.grid, "span", name, "faint");
    const last = Date.parse(today);
    const monday = last - ((new Date(last).getUTCDay() + 6) % 7) * dayLength - (weeks - 1) * 7 * dayLength;
    for (let week = monday; week <= last; week += 7 * dayLength) {
      const month = new Date(week + 6 * dayLength).toLocaleString("en", { month: "short", timeZone: "UTC" });
      const begins = week === monday || new Date(week + 6 * dayLength).getUTCDate() <= 7;
      add(this.grid, "span", begins ? month : "", "faint");
      for (let day = week; day < week + 7 * dayLength; day += dayLength) {
        const date = dateOf(day);
        const look = day > last ? "none" : "mark " + state(s, date) + (day === last ? " today" : "");
        add(this.grid, "span", day > last ? "" : String(new Date(day).getUTCDate()), look);
      }
    }
  }
}

function newLine(list) {
  const line = add(list, "li");
  add(line, "span", undefined, "mark");
  const text = add(line, "span");
  add(text, "strong");
  text.append(" ");
  add(text, "span");
  return line;
}

function dateOf(time) {
  return new Date(time).toISOString().slice(0, 10);
}

// state is that of one day; "": nothing is said of it.
function state(s, date) {
  if (s.settled && date < s.settled.slice(0, 10)) return "settled";
  if (date < s.days[0].from) return "";
  const range = s.days.find((d) => d.from <= date && (!d.to || date <= d.to));
  return range ? range.state : "unread";
}

// inDays is what is so over REST, a line each: how it looks, what, and what is so of it.
function inDays(s, r, now) {
  const lines = [settled(s)];
  let next = "";
  for (const d of s.days || []) {
    if (s.settled && d.to && d.to < s.settled.slice(0, 10)) continue; // settled meanwhile
    if (next && d.from > next) {
      lines.push(["unread", days(next, dateOf(Date.parse(d.from) - dayLength)), "not settled, and too many to list."]);
    }
    lines.push([d.state, days(d.from, d.to), ofDays(d, s, now)]);
    next = d.to && dateOf(Date.parse(d.to) + dayLength);
  }
  if (!s.days) {
    const who = r.owned ? "this instance does not know their state yet." : r.owner ?
      "the owner, " + r.owner + ", knows their state." : "only an instance that polls the resource knows their state.";
    lines.push(["unread", "The days since then:", who]);
  }
  return lines.concat(replay(r));
}

function settled(s) {
  if (!s.settled) return ["unread", "Nothing is settled yet.", ""];
  const [date, time] = instant(s.settled).split(" ");
  if (time === "00:00:00") return ["settled", "All days before " + date + " are settled:", appears];
  return ["settled", "All before " + date + " " + time + " is settled:", appears];
}

const appears = "no unread row with an earlier updated_at can appear.";

function days(from, to) {
  if (!to) return "Since " + from + ":";
  return (from === to ? from : from + " to " + to) + ":";
}

function ofDays(d, s, now) {
  const overlap = duration(s.overlap_seconds);
  switch (d.state) {
    case "closed":
      return "read completely. Settled as soon as all earlier days are.";
    case "not_closed": {
      const why = d.why.startsWith(d.from + " ") ? d.why.slice(d.from.length + 1) : "cannot be closed: " + d.why;
      if (!d.next) return why + ".";
      return why + ". The next try is " + (d.next > now ? "at " + since(d.next, now) : "due") + ".";
    }
    case "open":
      return "open. Each poll reads the changes. A day is over when our clock and the service's are both " + overlap +
        " (the overlap) past its end.";
  }
  return "over, but not read completely yet.";
}

// inTime is what is so from PostgreSQL, where there are no days.
function inTime(s, r, now) {
  const overlap = duration(s.overlap_seconds);
  const lines = [settled(s)];
  if (s.settled) {
    const reads = s.by_floor ? "Each poll reads the changes since the pass before." :
      "Each poll reads all of these rows again.";
    const delayed = r.state === "settling_delayed" || r.state === "incomplete" && r.since;
    const waits = delayed ? "settled does not move, for the reason above." : "settled stays " + overlap + " (the " +
      "overlap) behind, because a transaction may make its first write that long after the time that it stamps.";
    const open = "Open since then (" + duration(between(s.settled, now)) + "):";
    lines.push([delayed ? "delayed" : "open", open, waits + " " + reads]);
  }
  if (s.cursor) {
    lines.push(["unread", "A pass was cut short:", "it continues after the rows of " + instant(s.cursor) + "."]);
  }
  return lines.concat(replay(r));
}

function replay(r) {
  if (!r.replay) return [];
  const begins = (time) => !time || time.startsWith("0001-");
  const from = begins(r.replay.from) ? "all rows" : "the rows since " + instant(r.replay.from);
  const before = begins(r.replay.settled) ? "" : " Before the replay, settled was " + instant(r.replay.settled) + ".";
  return [["replaying", "A replay", "publishes again " + from + "." + before]];
}
