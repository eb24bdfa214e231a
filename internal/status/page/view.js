import { Calendar } from "./calendar.js";
import { cameTo } from "./card.js";
import { fill, put, shown } from "./dom.js";
import { count, duration, instant, names, since } from "./format.js";

const $ = (id) => document.getElementById(id);
const every = 2000; // milliseconds from one detail to the next
const fewPolls = 10; // that are shown at first

// View shows one resource alone, with what is settled of it, its last sweeps, dead letters and polls: the one that
// the address names after #. So the browser's way back leads back.
export class View {
  // changed is called when another resource, or none, is to be shown.
  constructor(changed) {
    this.chosen = "";
    this.changed = changed;
    this.known = [];
    this.calendar = new Calendar($("calendar"), $("settled"));
    this.polls = [];
    this.now = "";
    this.allPolls = false;
    this.paused = false;
    $("all-polls").addEventListener("click", () => this.unfold(!this.allPolls));
    addEventListener("hashchange", () => this.follow());
    setInterval(() => this.ask(), every);
  }

  // has says which resources there are. A name that is none of them shows all.
  has(resources) {
    const first = !this.known.length;
    this.known = resources;
    if (first) this.follow();
  }

  // shows says whether a resource is to be seen.
  shows(name) {
    return !this.chosen || this.chosen === name;
  }

  follow() {
    const name = location.hash.slice(1);
    const before = this.chosen;
    this.chosen = this.known.some((r) => r.name === name) ? name : "";
    if (this.chosen === before) return;
    document.body.classList.toggle("single", this.chosen !== "");
    put($("resources"), this.chosen || "Resources");
    for (const id of ["back", "polls", "sweeps"]) shown($(id), this.chosen !== "");
    for (const id of ["settling", "single"]) shown($(id), false);
    this.table("sweeps", []);
    this.polls = [];
    this.unfold(false);
    this.changed();
    $("resources").focus();
    scrollTo(0, 0);
    this.ask();
  }

  async ask() {
    const name = this.chosen;
    if (!name || this.paused) return;
    try {
      const answer = await fetch("resources/" + name + ".json");
      if (answer.ok && name === this.chosen) this.show(await answer.json());
    } catch {
      return; // the headline says that there is no connection
    }
  }

  show(d) {
    if (d.resource !== this.chosen || this.paused) return;
    shown($("settling"), Boolean(d.settling));
    if (d.settling) this.calendar.show(d.settling, this.known.find((r) => r.name === d.resource), d.now);
    shown($("single"), d.dead_letters.length > 0);
    fill($("single"), d.dead_letters.map((l) => [
      since(l.at, d.now), [l.id, "code"], l.field ? [l.field, "code"] : ["the row", "faint"], l.error,
    ]));
    this.polls = d.polls;
    this.now = d.now;
    this.unfold(this.allPolls);
    this.table("sweeps", d.sweeps.map((w) => {
      const { found, repaired } = cameTo(w);
      return [instant(w.ended || w.began), found.length ? [names(found), "busy"] : "no differences",
        names(repaired) || "nothing", [count(w.source_rows), "n"], w.left || "nothing"];
    }));
  }

  // unfold shows all polls, or the first few.
  unfold(all) {
    const outcomes = { ok: "ok", blocked: ["blocked", "busy"], failed: ["failed", "bad"] };
    const polls = all ? this.polls : this.polls.slice(0, fewPolls);
    this.allPolls = all;
    this.table("polls", polls.map((p) => [
      since(p.began, this.now), outcomes[p.outcome] || p.outcome, [count(p.rows), "n"], [took(p.seconds), "n"],
    ]));
    put($("all-polls"), all ? "Show the last " + fewPolls : "Show all " + this.polls.length);
    $("all-polls").setAttribute("aria-expanded", String(all));
    shown($("all-polls"), this.polls.length > fewPolls);
  }

  // table fills a table, or says that there is nothing in it.
  table(id, rows) {
    fill($(id), rows);
    shown($(id).querySelector("table"), rows.length > 0);
    shown($(id).querySelector(".none"), !rows.length);
  }
}

// took writes how long a poll took: most take milliseconds.
function took(seconds) {
  return seconds < 1 ? Math.round(1000 * seconds) + " ms" : duration(seconds);
}
