/**
 * Drive examples/viewer/ in a real browser, and print what was seen as JSON.
 *
 * Input on stdin: {"chromium", "page", "vault", "passphrase", "bundle", "bundle_passphrase", "query", "screenshots" or null}.
 * The vault is damaged on the way.
 */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { chromium } from "playwright-core";

const story = JSON.parse(await text(process.stdin));
const browser = await chromium.launch({ executablePath: story.chromium, args: ["--no-sandbox"] });
try {
  console.log(JSON.stringify(await told(await browser.newContext({ viewport: { width: 900, height: 1000 } }))));
} finally {
  await browser.close();
}

async function told(context) {
  const requests = [];
  const errors = [];
  context.on("request", (request) => requests.push(request.url()));
  context.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(String(error)));
  await context.setOffline(true);
  const seen = {
    "wrong passphrase": await wrongPassphrase(page),
    chosen: await chosenFolder(page),
    dropped: await droppedFolder(page),
    bundle: await chosenBundle(page),
    other: await otherFile(page),
  };
  await phone(page);
  const damaged = await damagedFolder(page);
  const quiet = { requests: [...new Set(requests)], errors: [...errors] };
  return { ...seen, damaged, ...quiet, connection: await connection(page) };
}

async function wrongPassphrase(page) {
  await chooseFolder(page);
  await page.evaluate(() => {
    const bar = document.getElementById("progress");
    new MutationObserver(() => (window.progressSeen ||= !bar.hidden)).observe(bar, { attributes: true });
  });
  await unlock(page, "not the passphrase");
  const said = await page.locator("#status").textContent();
  return { said, isProgressShown: await page.evaluate(() => window.progressSeen === true) };
}

/** By keyboard alone from the passphrase on. */
async function chosenFolder(page) {
  await chooseFolder(page);
  await unlock(page, story.passphrase);
  await page.locator("#results li").first().waitFor();
  const all = await results(page);
  await picture(page, "newest");
  await page.keyboard.type(story.query);
  const found = await results(page);
  const marked = await page.locator("mark").allTextContents();
  await picture(page, "search");
  await page.locator("#query").fill("");
  await page.locator("#state").selectOption("all");
  const everything = await page.locator("#results li").evaluateAll((items) =>
    items.map((item) => ({
      text: item.querySelector(".content").textContent,
      state: item.className,
      notes: item.querySelector(".why")?.textContent ?? null,
    })),
  );
  await picture(page, "all");
  return {
    all,
    found,
    marked,
    everything,
    count: await page.locator("#count").textContent(),
    isHostileInert: await page.evaluate(
      () => !("pwned" in window) && document.querySelectorAll("#results img, #results script").length === 0,
    ),
    tags: await page.locator(".tag").allTextContents(),
  };
}

async function chooseFolder(page) {
  await page.goto(story.page);
  await page.locator("#folder").setInputFiles(story.vault);
  await page.locator("#passphrase").waitFor();
}

async function unlock(page, passphrase) {
  await page.locator("#passphrase").pressSequentially(passphrase);
  await page.keyboard.press("Enter");
  // The page empties the field when it has its answer; progress may be gone before it is seen.
  await page.waitForFunction(() => document.getElementById("passphrase").value === "", null, { timeout: 120_000 });
}

function results(page) {
  return page.locator("#results .content").allTextContents();
}

/** A real drag of a folder, as the operating system would begin it. */
async function droppedFolder(page) {
  await page.goto(story.page);
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [story.vault], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) {
    await session.send("Input.dispatchDragEvent", { type, x: 450, y: 200, data });
  }
  await page.waitForFunction(
    () => !document.getElementById("unlock").hidden || document.getElementById("status").textContent !== "",
  );
  if (await page.locator("#unlock").isHidden()) return { refused: await page.locator("#status").textContent() };
  await unlock(page, story.passphrase);
  return { all: await results(page) };
}

async function chosenBundle(page) {
  await page.goto(story.page);
  await page.locator("#file").setInputFiles(story.bundle);
  await unlock(page, "not the passphrase");
  const refused = await page.locator("#status").textContent();
  await unlock(page, story.bundle_passphrase);
  await page.locator("#results li").first().waitFor();
  return { refused, all: await results(page) };
}

async function otherFile(page) {
  await page.goto(story.page);
  await page
    .locator("#file")
    .setInputFiles({ name: "notes.mseal", mimeType: "text/plain", buffer: Buffer.from("no container") });
  await unlock(page, story.passphrase);
  return page.locator("#status").textContent();
}

/** Damage the second record of the log, in which the memories after the first stand one by one. */
async function damagedFolder(page) {
  const folder = join(story.vault, "logs");
  const log = join(folder, (await readdir(folder))[0]);
  const content = await readFile(log);
  content[64 + 1108 + 600] ^= 1;
  await writeFile(log, content);
  await chooseFolder(page);
  await unlock(page, story.passphrase);
  await page.locator("#findings summary").click();
  return { all: await results(page), finding: await page.locator("#findings-list li").first().textContent() };
}

/** Try to leave the page, as code that got into it would. */
async function connection(page) {
  await page.context().setOffline(false);
  return page.evaluate(async () => {
    const violated = new Promise((resolve) =>
      document.addEventListener("securitypolicyviolation", () => resolve("refused by the policy"), { once: true }),
    );
    const reached = fetch("http://127.0.0.1:9/").then(
      () => "reached",
      () => new Promise(() => {}),
    );
    return Promise.race([violated, reached]);
  });
}

async function phone(page) {
  await page.setViewportSize({ width: 375, height: 700 });
  await page.emulateMedia({ colorScheme: "dark" });
  await chooseFolder(page);
  await picture(page, "phone-unlock");
  await unlock(page, story.passphrase);
  await page.locator("#results li").first().waitFor();
  await picture(page, "phone");
}

async function picture(page, name) {
  if (story.screenshots) await page.screenshot({ path: join(story.screenshots, `${name}.png`) });
}

async function text(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}
