// How figures are written. The command line writes them the same way.

const number = new Intl.NumberFormat("en");

// count writes a number with its thousands apart: 1,234,567.
export function count(n) {
  return number.format(n);
}

// rowCount writes a number of rows: 1 row, 1,234 rows.
export function rowCount(n) {
  return n === 1 ? "1 row" : count(n) + " rows";
}

// perSecond writes a rate: 0, 0.4, 12, 1,234.
export function perSecond(n) {
  return n > 0 && n < 9.95 ? n.toFixed(1) : count(Math.round(n));
}

// duration writes seconds as people say them: 0.8 s, 42 s, 3 min 5 s, 2 h 10 min, 4 d 3 h.
export function duration(seconds) {
  if (seconds < 9.95) return Math.max(0, seconds).toFixed(1) + " s";
  seconds = Math.round(seconds);
  if (seconds < 60) return seconds + " s";
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[Math.max(0, i)];
  const rest = Math.floor((seconds % size) / units[i + 1][0]);
  return Math.floor(seconds / size) + " " + name + (rest ? " " + rest + " " + units[i + 1][1] : "");
}

// instant writes a time to the second, in UTC as it came.
export function instant(text) {
  return text ? text.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "";
}

// clock is the time of day.
export function clock(text) {
  return instant(text).slice(11);
}

// between is the seconds from one time to another.
export function between(from, to) {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

// since writes a time for a sentence: the time of day, and the date if it is not today's.
export function since(text, now) {
  return text.slice(0, 10) === now.slice(0, 10) ? clock(text) : instant(text);
}

// names joins words: a, b and c.
export function names(list) {
  return list.length < 2 ? list.join("") : list.slice(0, -1).join(", ") + " and " + list[list.length - 1];
}
