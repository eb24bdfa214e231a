// add appends an element to parent.
export function add(parent, tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

// put changes the text of an element only if it differs. A text that stays keeps the reader's selection, and
// a screen reader does not read it again. Text between backticks is code, as in the texts of commands.
export function put(element, text) {
  const parts = String(text).split("`");
  if (element.textContent === parts.join("")) return;
  element.replaceChildren();
  parts.forEach((part, i) => (i % 2 ? add(element, "code", part) : element.append(part)));
}

// shown shows an element or hides it.
export function shown(element, yes) {
  if (element.hidden === yes) element.hidden = !yes;
}

// fill replaces the rows of the table within section. A row is a list of cells: a text, [text, class], or an
// element.
export function fill(section, rows) {
  const head = [...section.querySelectorAll("thead th")].map((th) => th.textContent);
  const body = document.createDocumentFragment();
  for (const cells of rows) {
    const row = add(body, "tr");
    cells.forEach((cell, i) => {
      const td = add(row, i === 0 ? "th" : "td");
      if (i === 0) td.scope = "row";
      else td.dataset.label = head[i];
      if (cell instanceof Node) td.append(cell);
      else if (Array.isArray(cell)) add(td, "span", cell[0], cell[1]);
      else add(td, "span", cell);
      if (Array.isArray(cell) && cell[1].split(" ").includes("n")) td.classList.add("n");
    });
  }
  section.querySelector("tbody").replaceChildren(body);
}
