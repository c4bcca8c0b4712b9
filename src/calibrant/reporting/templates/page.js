"use strict";
// Colours, downloads and print: all that works without plotly.js.
(() => {
  const results = JSON.parse(document.getElementById("results").textContent);

  // Light or dark: that of the system until the reader chooses.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const recolour = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colours`);
    document.dispatchEvent(new Event("recolour"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    recolour();
  });
  system.addEventListener("change", recolour);
  button.hidden = false;
  recolour();

  // On paper all details are open.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));

  // Downloads. A table is an array of objects, one per row.
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value !== "string") return String(value);
    // A spreadsheet would take such a name for a formula.
    const text = /^[=+\-@\t\r]/.test(value) && isNaN(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => {
    const names = Object.keys(rows[0] ?? {});
    const lines = [names, ...rows.map((row) => names.map((name) => row[name]))];
    return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
  };
  const zip = (columns) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => (
      Object.fromEntries(names.map((name) => [name, columns[name][i]]))
    ));
  };
  const perModel = (rowsOf) => results.assessments.flatMap(
    (one) => rowsOf(one).map((row) => ({ model: one.name, ...row })),
  );
  const files = {
    "results.json": () => JSON.stringify(results, null, 1),
    "measures.csv": () => csv(perModel((one) => one.estimates)),
    "bins.csv": () => csv(perModel(({ bins: { edges, ...rest } }) => (
      zip({ low: edges.slice(0, -1), high: edges.slice(1), ...rest })
    ))),
    "curves.csv": () => csv(perModel((one) => one.curves.flatMap(
      ({ method, x, y, density, low, high }) => (
        zip({ x, y, density, low, high }).map((row) => ({ method, ...row }))
      ),
    ))),
    "cumulative.csv": () => csv(perModel(({ cumulative: { fraction, score, deviation } }) => (
      zip({ fraction, score, deviation })
    ))),
    "murphy.csv": () => csv(perModel(
      ({ murphy: { threshold, loss, recalibrated_loss, regret } }) => (
        zip({ threshold, loss, recalibrated_loss, regret })
      ),
    )),
    "classes.csv": () => csv(perModel((one) => one.classes)),
    "groups.csv": () => csv(results.groups.rows),
  };
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  document.querySelectorAll("[data-file]").forEach((one) => {
    const name = one.dataset.file;
    const type = name.endsWith(".json") ? "application/json" : "text/csv";
    one.addEventListener("click", () => save(name, new Blob([files[name]()], { type })));
  });
})();
