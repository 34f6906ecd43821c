// Helpers that the report page and the watch page share. Both pages include this file before their own script.
"use strict";

const $ = (id) => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// Values of CSS colour variables, cached because plots read them for every stroke. Clear the cache when the theme changes.
const colours = new Map();
const colour = (name) => {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.body).getPropertyValue(name).trim() || "#000");
  return colours.get(name);
};
const onThemeChange = (redraw) =>
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.clear(); redraw(); });

// Options of a uPlot axis in the colours of the page.
const axisStyle = (size) => ({
  stroke: () => colour("--ink-2"),
  font: `${size}px system-ui, sans-serif`,
  grid: { stroke: () => colour("--grid"), width: 1 },
});
