/** Build examples/viewer/index.html: one file, with its script and style in it. `--check` compares instead of writing. */

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

import { build } from "esbuild";

const VIEWER = new URL("../../../examples/viewer/", import.meta.url);

const page = await builtPage();
const target = new URL("index.html", VIEWER);
if (process.argv.includes("--check")) {
  if (page !== (await readFile(target, "utf8"))) {
    console.error("examples/viewer/index.html is not what its sources make: npm run viewer");
    process.exitCode = 1;
  }
} else {
  await writeFile(target, page);
}

async function builtPage() {
  const script = await bundled(new URL("src/page.ts", VIEWER));
  const style = await readFile(new URL("src/page.css", VIEWER), "utf8");
  const template = await readFile(new URL("src/page.html", VIEWER), "utf8");
  const values = { script, style, "script-hash": hash(script), "style-hash": hash(style) };
  return template.replace(/\{\{([a-z-]+)\}\}/g, (_, name) => values[name]);
}

async function bundled(entry) {
  const result = await build({
    entryPoints: [entry.pathname],
    bundle: true,
    minify: true,
    charset: "ascii",
    format: "iife",
    target: ["chrome120", "firefox120", "safari17"],
    legalComments: "inline",
    write: false,
  });
  const script = result.outputFiles[0].text;
  // What would end the script element, or begin a comment in it, must not stand in it.
  if (/<\/script|<!--/i.test(script)) throw new Error("the script cannot stand inside a page");
  return script;
}

function hash(text) {
  return createHash("sha256").update(text, "utf8").digest("base64");
}
