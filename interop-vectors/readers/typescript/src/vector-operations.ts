/** What the vectors ask a reader and writer to do; interop-vectors/README.md describes each. */

import { acceptAll } from "./acceptance.js";
import { type Bytes, compareBytes, fromHex, toHex } from "./bytes.js";
import { openBox, openSecrets } from "./boxes.js";
import { openBundle } from "./bundle.js";
import { openManifest, openPart, partRow } from "./checkpoint.js";
import { decodeEnvelope, decodeMeta, embeddingRow, FLAG, type Meta } from "./content.js";
import { decodeDevice, listedDevice, openKeySets } from "./device.js";
import { type Code, codeOf, type Finding, FormatError } from "./errors.js";
import { decodeVersion, isActive, type Keyring, newest, type Version } from "./keyring.js";
import { type Kit, parseKit, parseRecovery } from "./kit.js";
import { openBase, placeLog, readLog } from "./log.js";
import { openMedia } from "./media.js";
import { openSession } from "./session.js";
import { openTraces } from "./trace.js";
import { decodeClock, decodeOperations, operationValues } from "./meta.js";
import { decode, decodeMap, type ValueMap } from "./msgpack.js";
import { decodeOperation } from "./operations.js";
import { decodePreamble, type Kind, KIND, PREAMBLE_SIZE } from "./preamble.js";
import { type Cost, derive, isSound, publicWrappingKey, stretch, unwrap, verify } from "./primitives.js";
import { openRecord, plaintextLength, recordAt, scan, walk } from "./records.js";
import { openWithKit, openWithRecovery } from "./slots.js";
import { type Applied, buildState, type State } from "./state.js";
import { openVault } from "./vault.js";
import { type Input, taggedValue } from "./vectors.js";
import { decompressFrame } from "./zstd.js";

export interface Outcome {
  readonly ok: object;
  readonly findings?: readonly Code[];
}

export interface VectorOperation {
  readonly input: readonly string[];
  readonly run: (input: Input) => Promise<Outcome> | Outcome;
}

/** Those of a syncing client, which this is not. */
export const LEFT_OUT = [
  "compare_branches",
  "parse_pairing",
  "agree",
  "open_hello",
  "open_welcome",
  "check_joined",
  "decode_segment",
  "sync",
];

export const OPERATIONS = new Map<string, VectorOperation>([
  ["derive", { input: ["ikm", "salt", "label", "parts"], run: deriveKey }],
  ["stretch", { input: ["passphrase", "salt", "cost"], run: stretchPassphrase }],
  ["unwrap", { input: ["seed", "info", "wrapped"], run: unwrapBox }],
  ["check_signing_key", { input: ["key"], run: checkSigningKey }],
  ["verify", { input: ["public", "message", "signature"], run: verifySignature }],
  ["decode_preamble", { input: ["content", "kind", "vault_id"], run: preamble }],
  ["place_log", { input: ["content", "name", "versions", "vault_keys"], run: place }],
  ["walk_records", { input: ["content"], run: walkRecords }],
  ["open_record", { input: ["key", "preamble", "index", "record"], run: record }],
  ["pad", { input: ["length"], run: (input) => ({ ok: { padded: plaintextLength(input.number("length")) } }) }],
  ["scan", { input: ["content"], run: scanLog }],
  [
    "decompress",
    {
      input: ["frame"],
      run: async (input) => ({ ok: { content: await decompressFrame(await input.bytes("frame")) } }),
    },
  ],
  [
    "decode_msgpack",
    {
      input: ["content"],
      run: async (input) => ({ ok: { value: taggedValue(decode(await input.bytes("content"))) } }),
    },
  ],
  ["decode_content", { input: ["content", "preamble", "index"], run: content }],
  ["read_column", { input: ["content", "width"], run: column }],
  ["read_log", { input: ["content", "key", "owner"], run: log }],
  ["open_base", { input: ["content", "versions"], run: base }],
  ["decode_keyring", { input: ["content", "vault_id"], run: keyringVersion }],
  ["accept_keyring", { input: ["versions", "vault_id"], run: acceptKeyring }],
  ["open_box", { input: ["version", "seed", "sign"], run: box }],
  ["open_secrets", { input: ["version", "vault_key"], run: secrets }],
  ["parse_kit", { input: ["text"], run: (input) => ({ ok: kitFields(parseKit(input.text("text"))) }) }],
  ["parse_recovery", { input: ["text"], run: (input) => ({ ok: kitFields(parseRecovery(input.text("text"))) }) }],
  ["open_kit", { input: ["versions", "kit", "passphrase"], run: kit }],
  ["open_recovery", { input: ["versions", "code"], run: recovery }],
  ["open_device", { input: ["content", "versions", "passphrase"], run: device }],
  ["open_manifest", { input: ["content", "versions", "vault_keys"], run: manifest }],
  ["open_part", { input: ["content", "vault_id", "row", "counter"], run: part }],
  ["open_media", { input: ["content", "vault_id", "named"], run: media }],
  ["open_traces", { input: ["content", "nonce", "local", "vault_id", "device_id"], run: traces }],
  ["open_session", { input: ["content", "id", "secret", "vault_id", "device_id"], run: session }],
  ["open_bundle", { input: ["content", "passphrase"], run: bundle }],
  ["decode_meta", { input: ["content", "epoch"], run: meta }],
  ["decode_operation", { input: ["content", "counter", "position"], run: operation }],
  ["merge", { input: ["records"], run: merge }],
  ["open_vault", { input: ["files", "passphrase"], run: vault }],
]);

// ── primitives ──────────────────────────────────────────────────────────────────────────────────────

async function deriveKey(input: Input): Promise<Outcome> {
  const parts = await input.manyBytes("parts");
  return { ok: { output: derive(await input.bytes("ikm"), await input.bytes("salt"), input.text("label"), ...parts) } };
}

async function stretchPassphrase(input: Input): Promise<Outcome> {
  const cost = input.json("cost") as unknown as Cost;
  return { ok: { output: await stretch(input.text("passphrase"), await input.bytes("salt"), cost) } };
}

async function unwrapBox(input: Input): Promise<Outcome> {
  const seed = await input.bytes("seed");
  const content = await unwrap(seed, await input.bytes("info"), await input.bytes("wrapped"));
  return { ok: { content, public: publicWrappingKey(seed) } };
}

async function checkSigningKey(input: Input): Promise<Outcome> {
  if (!isSound(await input.bytes("key"))) throw new FormatError("keyring_malformed");
  return { ok: {} };
}

async function verifySignature(input: Input): Promise<Outcome> {
  const isRight = verify(await input.bytes("public"), await input.bytes("message"), await input.bytes("signature"));
  if (!isRight) throw new FormatError("signature_invalid");
  return { ok: {} };
}

// ── containers ──────────────────────────────────────────────────────────────────────────────────────

async function preamble(input: Input): Promise<Outcome> {
  const vaultId = await input.optionalBytes("vault_id");
  const decoded = decodePreamble(await input.bytes("content"), input.number("kind") as Kind, vaultId ?? undefined);
  return { ok: { epoch: decoded.epoch, vault_id: decoded.vaultId, stream_id: decoded.streamId, nonce: decoded.nonce } };
}

async function place(input: Input): Promise<Outcome> {
  const keyring = await accepted(input);
  const { owner, key, limit } = placeLog(
    await input.bytes("content"),
    await input.bytes("name"),
    keyring,
    await vaultKeys(input),
  );
  const end = limit && { length: limit.length, records: limit.records, chain: limit.chain };
  return { ok: { owner: owner.sign, key, limit: end } };
}

/** Versions that count as accepted already. */
async function accepted(input: Input): Promise<Keyring> {
  const versions = (await input.manyBytes("versions")).map((file) => decodeVersion(file));
  return { vaultId: versions[0]!.preamble.vaultId, versions };
}

async function vaultKeys(input: Input): Promise<Map<number, Bytes>> {
  return new Map((await input.value("vault_keys")) as [number, Bytes][]);
}

async function walkRecords(input: Input): Promise<Outcome> {
  const records = walk(await input.bytes("content"), PREAMBLE_SIZE);
  return { ok: { records: records.map((one) => [one.start, one.body.length]) } };
}

async function record(input: Input): Promise<Outcome> {
  const stored = recordAt(await input.bytes("record"), 0, input.number("index"));
  return {
    ok: { content: await openRecord(await input.bytes("key"), { bytes: await input.bytes("preamble") }, stored) },
  };
}

async function scanLog(input: Input): Promise<Outcome> {
  const { records, damaged } = scan(await input.bytes("content"), PREAMBLE_SIZE);
  const ok = {
    records: records.map((one) => [one.index, one.start, one.body.length]),
    damaged: damaged.map((one) => [one.start, one.end]),
  };
  return { ok, findings: damaged.map((one) => one.code) };
}

async function content(input: Input): Promise<Outcome> {
  const envelope = decodeEnvelope(await input.bytes("content"));
  const { map, embeddings } = await decodeMeta(envelope);
  const ok = {
    chain: envelope.chain,
    signed: (envelope.flags & FLAG.signed) !== 0,
    more: (envelope.flags & FLAG.more) !== 0,
    meta: taggedValue(without(map, "columns")),
    columns: embeddings.map(({ model, width, rows, bytes }) => ({
      name: "embedding",
      model,
      width,
      rows,
      content: bytes,
    })),
  };
  return { ok };
}

function without(map: ValueMap, name: string): ValueMap {
  return new Map([...map].filter(([key]) => key !== name));
}

async function column(input: Input): Promise<Outcome> {
  const bytes = await input.bytes("content");
  const width = input.number("width");
  const rows = bytes.length / (2 * width);
  const usable: number[] = [];
  const findings: Code[] = [];
  for (let row = 0; row < rows; row++) {
    try {
      embeddingRow({ model: "", width, rows, bytes }, row);
      usable.push(row);
    } catch (error) {
      findings.push(codeOf(error));
    }
  }
  return { ok: { usable }, findings };
}

async function log(input: Input): Promise<Outcome> {
  const bytes = await input.bytes("content");
  const source = {
    file: "log",
    preamble: decodePreamble(bytes, KIND.log),
    key: await input.bytes("key"),
    owner: await input.bytes("owner"),
  };
  const reading = await readLog(bytes, source);
  const { end, waiting, trusted, tornBytes, isAppendable } = reading;
  const ok = { trusted: [...trusted].sort((a, b) => a - b), waiting, end, torn: tornBytes, appendable: isAppendable };
  return { ok, findings: codes(reading.findings) };
}

function codes(findings: readonly Finding[]): Code[] {
  return findings.map((finding) => finding.code);
}

async function base(input: Input): Promise<Outcome> {
  const bytes = await input.bytes("content");
  const keyring = await accepted(input);
  const { length, records, chain, counter } = openBase(bytes, decodePreamble(bytes, KIND.log).streamId, keyring);
  return { ok: { length, records, chain, counter } };
}

// ── keyring ─────────────────────────────────────────────────────────────────────────────────────────

async function keyringVersion(input: Input): Promise<Outcome> {
  const vaultId = await input.optionalBytes("vault_id");
  const version = decodeVersion(await input.bytes("content"), vaultId ?? undefined);
  return { ok: { ...versionFields(version), whole: version.sealedPart !== null } };
}

async function acceptKeyring(input: Input): Promise<Outcome> {
  return { ok: versionFields(newest(acceptAll(await input.manyBytes("versions"), await input.bytes("vault_id")))) };
}

function versionFields({ version, epoch, digest, devices }: Version) {
  return { version, epoch, digest, active: devices.filter(isActive).map((entry) => entry.id) };
}

async function box(input: Input): Promise<Outcome> {
  const version = decodeVersion(await input.bytes("version"));
  const sign = await input.bytes("sign");
  const entry = version.devices.find((one) => toHex(one.sign) === toHex(sign));
  const recipient = { id: entry?.id ?? new Uint8Array(16), sign, seed: await input.bytes("seed") };
  return { ok: { vault_key: await openBox(version, recipient) } };
}

async function secrets(input: Input): Promise<Outcome> {
  const opened = await openSecrets(decodeVersion(await input.bytes("version")), await input.bytes("vault_key"));
  const history = [...opened.history].map(([epoch, key]) => [epoch, { bytes: key }]);
  return { ok: { history, names: Object.fromEntries(opened.names), kit_secret: opened.kitSecret } };
}

function kitFields({ vaultId, secret, generation, server }: Kit) {
  return { vault_id: vaultId, secret, generation, server };
}

async function kit(input: Input): Promise<Outcome> {
  const opened = await openWithKit(await input.manyBytes("versions"), input.text("kit"), input.text("passphrase"));
  return { ok: { vault_key: opened.vaultKey } };
}

async function recovery(input: Input): Promise<Outcome> {
  const opened = await openWithRecovery(await input.manyBytes("versions"), input.text("code"));
  return { ok: { vault_key: opened.vaultKey } };
}

async function device(input: Input): Promise<Outcome> {
  const file = decodeDevice(await input.bytes("content"));
  const keyring = await accepted(input);
  const opened = listedDevice(file, await openKeySets(file, input.text("passphrase")), newest(keyring));
  const { sign, wrap, local } = opened.keys;
  return { ok: { device_id: opened.id, sign, wrap, local } };
}

// ── checkpoint, media, bundle ───────────────────────────────────────────────────────────────────────

async function manifest(input: Input): Promise<Outcome> {
  const keyring = await accepted(input);
  const opened = await openManifest(
    await input.optionalBytes("content"),
    newest(keyring).floor!,
    keyring,
    await vaultKeys(input),
  );
  const logs = opened.logs.map((row) => [
    { bytes: row.stream },
    row.length,
    row.records,
    { bytes: row.chain },
    row.counter,
  ]);
  const parts = opened.parts.map((row) => [
    { bytes: row.id },
    { bytes: row.key },
    row.length,
    row.records,
    { bytes: row.chain },
  ]);
  return { ok: { made_by: opened.madeBy, counter: opened.counter, logs, parts } };
}

async function part(input: Input): Promise<Outcome> {
  const row = partRow(await input.value("row"));
  const [bytes, vaultId] = [await input.optionalBytes("content"), await input.bytes("vault_id")];
  try {
    const piece = await openPart(bytes, vaultId, row, input.number("counter"));
    return { ok: { records: piece.records.length, operations: piece.applied.length }, findings: codes(piece.findings) };
  } catch (error) {
    // A part that cannot be read at all is a finding in whoever reads the checkpoint.
    return { ok: { records: 0, operations: 0 }, findings: [codeOf(error)] };
  }
}

async function media(input: Input): Promise<Outcome> {
  const { id, key, bytes, digest } = input.json("named") as { id: string; key: string; bytes: number; digest: string };
  const named = { id: fromHex(id), key: fromHex(key), bytes, digest: fromHex(digest) };
  await openMedia(await input.bytes("content"), await input.bytes("vault_id"), named);
  return { ok: { digest: named.digest } };
}

async function traces(input: Input): Promise<Outcome> {
  const place = {
    nonce: await input.bytes("nonce"),
    local: await input.bytes("local"),
    vaultId: await input.bytes("vault_id"),
    deviceId: await input.bytes("device_id"),
  };
  const opened = await openTraces(await input.bytes("content"), place);
  return { ok: { traces: opened.traces.map(taggedValue) }, findings: codes(opened.findings) };
}

async function session(input: Input): Promise<Outcome> {
  const owner = {
    secret: await input.bytes("secret"),
    vaultId: await input.bytes("vault_id"),
    deviceId: await input.bytes("device_id"),
  };
  const opened = await openSession(await input.bytes("content"), await input.bytes("id"), owner);
  return { ok: { session_name: opened.name, session: taggedValue(opened.session) } };
}

async function bundle(input: Input): Promise<Outcome> {
  const opened = await openBundle(await input.bytes("content"), input.text("passphrase"));
  return { ok: { memories: memories(opened.state) }, findings: codes(opened.findings) };
}

// ── operations and state ────────────────────────────────────────────────────────────────────────────

async function meta(input: Input): Promise<Outcome> {
  const map = decodeMap(await input.bytes("content"));
  const { counter, heads } = decodeClock(map, input.number("epoch"));
  const rows = heads.map((head) => [{ bytes: head.stream }, head.index, { bytes: head.chain }, head.counter]);
  return { ok: { counter, heads: rows, operations: operationValues(map).length } };
}

async function operation(input: Input): Promise<Outcome> {
  const value = decode(await input.bytes("content"));
  const [counter, position] = [input.number("counter"), input.number("position")];
  const { id, stamp, change } = decodeOperation(value, { counter, position, most: counter - 1 });
  const ok = { op: (value as ValueMap).get("op"), id: fromHex(id), stamp: [stamp.counter, stamp.position] };
  return { ok, findings: change.op === null ? ["operation_unknown"] : [] };
}

async function merge(input: Input): Promise<Outcome> {
  const metas = (await input.manyBytes("records")).map((bytes) => ({ map: decodeMap(bytes), embeddings: [] }));
  const findings: Code[] = [];
  const applied = metas.flatMap((one) => appliedOf(one, findings));
  const [forwards, backwards] = [merged(buildState(applied)), merged(buildState([...applied].reverse()))];
  if (JSON.stringify(forwards) !== JSON.stringify(backwards))
    throw new Error("the order of operations changed the state");
  if (buildState(applied).taken.length > 0) findings.push("id_taken");
  return { ok: forwards, findings };
}

/** An epoch in which every counter below 2^53 may be. */
const LATE = 2 ** 21;

function appliedOf(one: Meta, findings: Code[]): readonly Applied[] {
  try {
    const { counter } = decodeClock(one.map, LATE);
    const { applied, faults } = decodeOperations(one, { counter, most: counter - 1 });
    findings.push(...faults.map((fault) => fault.code));
    return applied;
  } catch (error) {
    findings.push(codeOf(error));
    return [];
  }
}

function merged(state: State) {
  return {
    memories: memories(state),
    erased: [...state.erased].sort(),
    settings: Object.fromEntries([...state.settings].sort().map(([name, value]) => [name, taggedValue(value)])),
  };
}

function memories(state: State) {
  const sorted = [...state.memories.values()].sort((a, b) => compareBytes(fromHex(a.id), fromHex(b.id)));
  return sorted.map((memory) => ({
    id: memory.id,
    content: memory.fields.content,
    kind: memory.fields.kind,
    tags: memory.tags,
    active: memory.active,
    retracted: memory.retracted !== null,
    superseded_by: memory.supersededBy,
    conflicts: [...memory.conflicts].sort(),
  }));
}

async function vault(input: Input): Promise<Outcome> {
  const { state, findings } = await openVault(await input.namedBytes("files"), input.text("passphrase"));
  return { ok: { memories: memories(state) }, findings: codes(findings) };
}
