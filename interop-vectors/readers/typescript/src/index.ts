/** What other programs use of this reader. */

export { type Bytes, fromHex, toHex } from "./bytes.js";
export { type OpenedBundle, openBundle } from "./bundle.js";
export { CODES, type Code, type Finding, FormatError } from "./errors.js";
export { isoTime, type Listed, listMemories, stateOf } from "./listing.js";
export { openMedia } from "./media.js";
export { openSession } from "./session.js";
export { openTraces } from "./trace.js";
export type { Value, ValueMap } from "./msgpack.js";
export { openWithKit, openWithRecovery } from "./slots.js";
export type { Memory, State } from "./state.js";
export { type Files, type OpenedVault, openVault, type Progress, type VaultLog } from "./vault.js";
export { type Append, appendRecord } from "./writing.js";
