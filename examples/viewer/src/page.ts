/** The page: choose, unlock, search. The same script is the worker that reads. */

import type { Finding } from "../../../interop-vectors/readers/typescript/src/errors.js";
import type { Listed } from "../../../interop-vectors/readers/typescript/src/listing.js";
import { fromDrop, fromInput } from "./choosing.js";
import { answer, type Answer, type Chosen, type Read, type Request } from "./reading.js";
import { Index, pieces, type StateFilter } from "./search.js";

const AT_ONCE = 100;

const REFUSALS: Record<string, string> = {
  passphrase_wrong: "The passphrase does not open this vault. Try again.",
  bundle_passphrase: "The passphrase does not open this file. Try again.",
  passphrase_empty: "Type the passphrase first.",
  preamble_magic: "This is no file of memseal, or it was damaged on its way.",
  preamble_short: "This is no file of memseal, or it was cut short.",
  kind_mismatch: "This is a part of a vault. Choose the vault's whole folder, or one exported bundle.",
  version_unknown: "This was made by a newer version. Get a newer viewer.",
  suite_unknown: "This was made by a newer version. Get a newer viewer.",
  kdf_unknown: "This was made by a newer version. Get a newer viewer.",
  device_ended: "This device was ended in the vault. Export a bundle on another device.",
  local_rollback:
    "A file of this vault was put back to an older state: this passphrase was replaced. Try the newer one.",
};

const DOING: Record<string, string> = {
  passphrase: "Stretching the passphrase. This takes a few seconds on purpose.",
  bundle: "Reading the memories.",
  checkpoint: "Reading the checkpoint.",
  logs: "Reading the logs.",
};

function main(): void {
  const source = document.currentScript?.textContent ?? "";
  new Page(source).start();
}

class Page {
  private chosen: Chosen | null = null;
  private read: Read | null = null;
  private index = new Index([]);
  private shown = AT_ONCE;

  constructor(private readonly source: string) {}

  start(): void {
    const [file, folder] = [find("file", HTMLInputElement), find("folder", HTMLInputElement)];
    find("choose-file", HTMLButtonElement).addEventListener("click", () => file.click());
    find("choose-folder", HTMLButtonElement).addEventListener("click", () => folder.click());
    for (const input of [file, folder]) input.addEventListener("change", () => void this.take(fromInput(input)));
    this.listenForDrops();
    find("unlock", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.unlock();
    });
    find("query", HTMLInputElement).addEventListener("input", () => this.search());
    find("state", HTMLSelectElement).addEventListener("change", () => this.search());
    find("more", HTMLButtonElement).addEventListener("click", () => this.showMore());
    find("lock", HTMLButtonElement).addEventListener("click", () => location.reload());
  }

  private listenForDrops(): void {
    const body = document.body;
    body.addEventListener("dragover", (event) => {
      event.preventDefault();
      body.classList.add("dropping");
    });
    body.addEventListener("dragleave", () => body.classList.remove("dropping"));
    body.addEventListener("drop", (event) => {
      event.preventDefault();
      body.classList.remove("dropping");
      if (event.dataTransfer && !this.read) void this.take(fromDrop(event.dataTransfer));
    });
  }

  private async take(choosing: Promise<Chosen | null>): Promise<void> {
    try {
      this.chosen = await choosing;
    } catch {
      say("The browser does not give this folder to the page. Use “Choose a vault folder”.");
      return;
    }
    if (!this.chosen) {
      say("This is neither a bundle nor a vault’s folder (which has a file device.mseal).");
      return;
    }
    const { kind, files } = this.chosen;
    const name = kind === "bundle" ? [...files.keys()][0]! : `a vault of ${files.size} files`;
    find("chosen", HTMLElement).textContent = `Chosen: ${name}`;
    show("unlock", true);
    say("");
    find("passphrase", HTMLInputElement).focus();
  }

  private async unlock(): Promise<void> {
    const passphrase = find("passphrase", HTMLInputElement);
    if (!this.chosen) return;
    this.busy(true);
    const refused = await this.ask({ chosen: this.chosen, passphrase: passphrase.value });
    this.busy(false);
    passphrase.value = "";
    if (refused === null) this.present();
    else {
      say(REFUSALS[refused] ?? `It cannot be read (${refused}).`);
      passphrase.focus();
    }
  }

  private busy(isBusy: boolean): void {
    show("progress", isBusy);
    for (const id of ["unlock-button", "choose-file", "choose-folder"]) find(id, HTMLButtonElement).disabled = isBusy;
    if (isBusy) say(DOING["passphrase"]!);
  }

  /** Return why it was refused, or null. */
  private ask(request: Request): Promise<string | null> {
    return new Promise((resolve) => {
      const take = (message: Answer): void => {
        if (message.type === "progress") showProgress(message);
        if (message.type === "refused") resolve(message.code);
        if (message.type === "read") {
          this.read = message.read;
          resolve(null);
        }
      };
      this.send(request, take);
    });
  }

  private send(request: Request, take: (answer: Answer) => void): void {
    const inPage = (): void => void answer(request, take);
    try {
      const url = URL.createObjectURL(new Blob([this.source], { type: "text/javascript" }));
      const worker = new Worker(url);
      worker.addEventListener("message", (event: MessageEvent<Answer>) => {
        take(event.data);
        if (event.data.type !== "progress") {
          worker.terminate();
          URL.revokeObjectURL(url);
        }
      });
      // A browser that starts no worker for a page from a file: then the page itself reads, and stands still a while.
      worker.addEventListener("error", inPage, { once: true });
      worker.postMessage(request);
    } catch {
      inPage();
    }
  }

  // ── showing ───────────────────────────────────────────────────────────────────────────────────────

  private present(): void {
    const read = this.read!;
    this.index = new Index(read.memories);
    show("choosing", false);
    show("reading", true);
    say("");
    presentFindings(read);
    this.search();
    find("query", HTMLInputElement).focus();
  }

  private search(): void {
    this.shown = AT_ONCE;
    this.list();
  }

  private showMore(): void {
    this.shown += AT_ONCE;
    this.list();
  }

  private list(): void {
    const query = find("query", HTMLInputElement).value;
    const state = find("state", HTMLSelectElement).value as StateFilter;
    const found = this.index.search(query, state);
    const results = find("results", HTMLElement);
    results.replaceChildren(...found.slice(0, this.shown).map((memory) => this.item(memory, query)));
    show("more", found.length > this.shown);
    const total = this.read!.memories.length;
    find("count", HTMLElement).textContent = `${found.length} of ${total} ${total === 1 ? "memory" : "memories"}`;
  }

  // Everything from the vault becomes a text node: whatever a memory says, it is only text here.
  private item(memory: Listed, query: string): HTMLElement {
    const item = element("li", { className: `memory ${memory.state}` });
    item.append(content(memory.content, query), this.details(memory));
    const { conflicts, media } = this.read!;
    if (memory.state !== "active") item.append(element("p", { className: "why" }, whyNot(memory)));
    if (memory.superseded_by) item.append(this.link("Newer version", memory.superseded_by));
    if (memory.supersedes) item.append(this.link("Older version", memory.supersedes));
    for (const id of conflicts.get(memory.id) ?? []) item.append(this.link("Conflicting version", id));
    for (const text of media.get(memory.id) ?? []) item.append(element("p", { className: "why" }, `Media: ${text}`));
    return item;
  }

  private details(memory: Listed): HTMLElement {
    const details = element("p", { className: "details" });
    const when = memory.captured_at ?? memory.written_at;
    const time = element("time", { title: when }, when.slice(0, 16).replace("T", " "));
    time.setAttribute("datetime", when);
    details.append(
      time,
      ...[memory.kind, memory.author, memory.thread, memory.source]
        .filter(Boolean)
        .map((text) => element("span", {}, text!)),
    );
    for (const tag of memory.tags) {
      const button = element("button", { className: "tag", type: "button" }, `#${tag}`);
      button.addEventListener("click", () => this.searchFor(tag));
      details.append(button);
    }
    return details;
  }

  private searchFor(text: string): void {
    const query = find("query", HTMLInputElement);
    query.value = text;
    query.focus();
    this.search();
  }

  private link(label: string, id: string): HTMLElement {
    const other = this.read!.memories.find((memory) => memory.id === id);
    const text = other ? shortened(other.content) : "erased";
    return element("p", { className: "why" }, `${label}: ${text}`);
  }
}

function whyNot(memory: Listed): string {
  const state = memory.state === "retracted" ? "Retracted" : "Superseded";
  return memory.reason ? `${state}: ${memory.reason}` : state;
}

function content(text: string, query: string): HTMLElement {
  const paragraph = element("p", { className: "content", dir: "auto" });
  for (const piece of pieces(text, query)) {
    paragraph.append(piece.isHit ? element("mark", {}, piece.text) : piece.text);
  }
  return paragraph;
}

function presentFindings({ findings, erased }: Read): void {
  show("findings", findings.length > 0);
  find("findings-count", HTMLElement).textContent = findings.length === 1 ? "1 finding" : `${findings.length} findings`;
  find("findings-list", HTMLElement).replaceChildren(...findings.map((one) => element("li", {}, findingText(one))));
  find("erased", HTMLElement).textContent = erased > 0 ? `${erased} erased for good.` : "";
}

function findingText({ code, file, records }: Finding): string {
  return records.length > 0 ? `${code}: ${file}, record ${records.join(", ")}` : `${code}: ${file}`;
}

function showProgress({ doing, done, total }: { doing: string; done: number; total: number }): void {
  const bar = find("progress", HTMLProgressElement);
  if (doing === "passphrase") bar.removeAttribute("value");
  else bar.value = done / Math.max(1, total);
  say(DOING[doing] ?? doing);
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

function say(text: string): void {
  find("status", HTMLElement).textContent = text;
}

function show(id: string, isShown: boolean): void {
  find(id, HTMLElement).hidden = !isShown;
}

function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  text?: string,
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(name), properties);
  if (text !== undefined) made.textContent = text;
  return made;
}

if (typeof document === "undefined") {
  self.addEventListener("message", (event: MessageEvent<Request>) => {
    void answer(event.data, (message) => self.postMessage(message));
  });
} else {
  main();
}
