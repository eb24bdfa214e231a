import { Calendar } from "./calendar.js";
import { put, shown } from "./dom.js";

const $ = (id) => document.getElementById(id);

// View shows one resource alone, with what is settled of it and its dead letters: the one that the address
// names after #. So the browser's way back leads back.
export class View {
  // changed is called when another resource, or none, is to be shown.
  constructor(changed) {
    this.chosen = "";
    this.changed = changed;
    this.known = [];
    this.calendar = new Calendar($("calendar"), $("settled"));
    addEventListener("hashchange", () => this.follow());
  }

  // show takes the resources that there are. A name that is none of them shows all.
  show(resources, now) {
    const first = !this.known.length;
    this.known = resources;
    if (first) this.follow();
    const one = resources.find((r) => r.resource === this.chosen);
    shown($("settling"), Boolean(one && one.settling));
    if (one && one.settling) this.calendar.show(one, now);
  }

  // shows says whether a resource is to be seen.
  shows(name) {
    return !this.chosen || this.chosen === name;
  }

  follow() {
    const name = location.hash.slice(1);
    const before = this.chosen;
    this.chosen = this.known.some((r) => r.resource === name) ? name : "";
    if (this.chosen === before) return;
    document.body.classList.toggle("single", this.chosen !== "");
    put($("resources"), this.chosen || "Resources");
    shown($("back"), this.chosen !== "");
    this.changed();
    $("resources").focus();
    scrollTo(0, 0);
  }
}
