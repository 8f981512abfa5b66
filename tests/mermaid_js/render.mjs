// Draws Mermaid texts in a headless browser and reads back what the pictures show.
//
// usage: node render.mjs CHROMIUM
// One JSON request a line on stdin: {id, text, version, htmlLabels}; version is "10", "11" or "12".
// One JSON answer a line on stdout: {id, ok, error, nodes, clusters, edges, edgeLabels, title,
// description, width, height, ms}. Ends when stdin does.

import fs from "node:fs";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const RENDERS_PER_PAGE = 50;
const QUIET = [
  "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

const scripts = new Map();
const pages = new Map();
let renders = 0;

function script(version) {
  if (!/^\d+$/.test(version)) throw new Error(`no Mermaid version ${version}`);
  if (!scripts.has(version)) {
    const url = new URL(`node_modules/mermaid-${version}/dist/mermaid.min.js`, import.meta.url);
    scripts.set(version, fs.readFileSync(fileURLToPath(url), "utf8"));
  }
  return scripts.get(version);
}

async function pageFor(browser, version, htmlLabels) {
  const key = `${version} ${htmlLabels}`;
  const kept = pages.get(key);
  if (kept && kept.left-- > 0) return kept.page;
  await forget(key);
  const page = await browser.newPage();
  await page.setContent("<!doctype html><meta charset=utf-8><body></body>");
  await page.addScriptTag({ content: script(version) });
  await page.evaluate((html) => {
    mermaid.initialize({ startOnLoad: false, htmlLabels: html, flowchart: { htmlLabels: html } });
  }, htmlLabels);
  pages.set(key, { page, left: RENDERS_PER_PAGE - 1 });
  return page;
}

async function forget(key) {
  const kept = pages.get(key);
  pages.delete(key);
  if (kept) await kept.page.close();
}

// Runs in the page.
async function draw(id, text) {
  const started = performance.now();
  const { svg } = await mermaid.render(id, text);
  const ms = Math.round(performance.now() - started);
  document.body.innerHTML = svg;
  const root = document.querySelector("svg");

  // A line for each line that was written and, without HTML, for each that was wrapped.
  function lines(element) {
    const rows = [...element.querySelectorAll("text > tspan")];
    if (rows.length) return rows.map((row) => row.textContent).join("\n");
    const copy = element.cloneNode(true);
    for (const br of copy.querySelectorAll("br")) br.replaceWith("\n");
    return copy.textContent;
  }
  const all = (selector) => [...root.querySelectorAll(selector)];
  const named = (elements, pattern, part) => Object.fromEntries(elements.map((element) => {
    const match = pattern.exec(element.id);
    return [match ? match[1] : element.id, lines(element.querySelector(part) ?? element)];
  }));

  const nodes = named(all("g.node"), /(?:^|-)flowchart-(.+)-\d+$/, ".label");
  const clusters = named(all("g.cluster"), /(?:^|-)(s\d+)$/, ".cluster-label");
  // Version 11 draws an edge from a node to itself as three pieces.
  const edges = all(".edgePaths path[id]").filter(({ id }) => !/-cyclic-special-[12]$/.test(id))
    .map((path) => {
      const match = /(?:^|-)L[-_](n\d+)[-_](n\d+)[-_]\d+$/.exec(path.id);
      const loop = /(n\d+)-cyclic-special-mid$/.exec(path.id);
      return match ? [match[1], match[2]] : loop ? [loop[1], loop[1]] : [path.id, ""];
    });
  const edgeLabels = all(".edgeLabels .edgeLabel .label").map(lines).filter((label) => label.trim());
  const shown = all("text, foreignObject").map(lines).join(" ").replace(/\s+/g, " ").trim();
  const failed = root.getAttribute("aria-roledescription") === "error"
    || shown === "Maximum text size in diagram exceeded";
  const box = root.viewBox.baseVal;
  return {
    ok: !failed,
    error: failed ? `error picture: ${shown}` : "",
    nodes, clusters, edges, edgeLabels, ms,
    title: root.querySelector(":scope > title")?.textContent ?? "",
    description: root.querySelector(":scope > desc")?.textContent ?? "",
    width: Math.round(box.width), height: Math.round(box.height),
  };
}

const browser = await puppeteer.launch({
  executablePath: process.argv[2], headless: true, args: QUIET, protocolTimeout: 300_000,
});
try {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, text, version, htmlLabels } = JSON.parse(line);
    let answer;
    try {
      const page = await pageFor(browser, version, htmlLabels);
      answer = await page.evaluate(draw, `g${renders++}`, text);
    } catch (error) {
      answer = { ok: false, error: String(error.message ?? error) };
    }
    // What failed may have left something behind that spoils the next picture.
    if (!answer.ok) await forget(`${version} ${htmlLabels}`);
    process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
  }
} finally {
  await browser.close();
}
