"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const list = $("tools");
  const number = (n) => n.toLocaleString("en");
  const costsIn = (element) => Object.fromEntries(Array.from(element?.querySelectorAll("tr[data-format]") ?? [], (row) => [row.dataset.format, Number(row.dataset.tokens)]));
  const totals = costsIn($("costs"));
  const tools = Array.from(list.children, (element) => ({
    element,
    text: element.querySelector(".name").textContent.toLowerCase() + " " + element.querySelector(".body").textContent.toLowerCase(),
    costs: costsIn(element),
    data: element.dataset,
  }));
  const byName = tools.slice();

  const filter = () => {
    const words = $("query").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, tokens = 0;
    for (const tool of tools) {
      const matches = ["source", "category", "decision"].every((key) => $(key).value === "" || tool.data[key] === $(key).value)
        && words.every((word) => tool.text.includes(word));
      tool.element.hidden = !matches;
      if (matches) {
        shown++;
        tokens += tool.costs[$("format").value] || 0;
      }
    }
    if (shown === tools.length) { // together they have a frame that counts too
      tokens = totals[$("format").value] ?? tokens;
    }
    $("count").textContent = `${number(shown)} of ${number(tools.length)} tools, ${number(tokens)} tokens per request`;
    $("nothing").hidden = shown > 0 || tools.length === 0;
  };

  const sort = () => {
    const format = $("format").value;
    const order = $("sort").value === "cost" ? byName.toSorted((a, b) => (b.costs[format] || 0) - (a.costs[format] || 0)) : byName;
    list.append(...order.map((tool) => tool.element));
  };

  const showCosts = () => {
    for (const tool of tools) {
      const cell = tool.element.querySelector(".tokens");
      if (cell) {
        cell.textContent = number(tool.costs[$("format").value] || 0);
      }
    }
    for (const [row, tokens] of bySource($("format").value)) {
      row.querySelector(".tokens").textContent = number(tokens);
      row.querySelector("progress").value = tokens;
    }
    sort();
    filter();
  };

  // bySource returns the rows of the sources with their costs, and puts the most expensive one first.
  const bySource = (format) => {
    const rows = Array.from(document.querySelectorAll("#sources tbody tr"), (row) =>
      [row, tools.reduce((sum, tool) => sum + (tool.data.source === row.dataset.source ? tool.costs[format] || 0 : 0), 0)]);
    rows.sort((a, b) => b[1] - a[1]);
    for (const [row] of rows) {
      row.querySelector("progress").max = Math.max(rows[0][1], 1);
      row.parentElement.append(row);
    }
    return rows;
  };

  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details")) {
      target.open = true;
      target.scrollIntoView();
    }
  };

  const clear = () => {
    for (const id of ["query", "source", "category", "decision"]) {
      $(id).value = "";
    }
    filter();
    $("query").focus();
  };

  $("query").addEventListener("input", filter);
  for (const id of ["source", "category", "decision"]) {
    $(id).addEventListener("change", filter);
  }
  $("sort").addEventListener("change", sort);
  $("format").addEventListener("change", showCosts);
  $("clear").addEventListener("click", clear);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      $("query").focus();
    }
  });
  window.addEventListener("hashchange", openTarget);
  $("filters").hidden = false;
  filter();
  openTarget();
})();
