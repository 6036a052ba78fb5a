/** What a record's meta says: its counter, the heads it names, its operations (vault-format, section 9). */

import type { Bytes } from "./bytes.js";
import { type EmbeddingColumn, embeddingRow, type Meta } from "./content.js";
import { type Code, codeOf, FormatError } from "./errors.js";
import { asBytes, asInteger, asRow, BELOW_2_53, Fields, mostCounter } from "./fields.js";
import type { Value, ValueMap } from "./msgpack.js";
import { decodeOperation, type Operation, type Place } from "./operations.js";
import type { Applied, Vector } from "./state.js";

export interface Head {
  readonly stream: Bytes;
  readonly index: number;
  readonly chain: Bytes;
  readonly counter: number;
}

export interface Clock {
  readonly previous: number;
  readonly heads: readonly Head[];
  readonly counter: number;
}

const MALFORMED: Code = "operation_invalid";

/** Read `previous` and `heads`, and count; a counter beyond the epoch's highest is `counter_limit`. */
export function decodeClock(map: ValueMap, epoch: number): Clock {
  const fields = new Fields(map, MALFORMED);
  const previous = counterOf(map.get("previous") ?? 0);
  const heads = map.has("heads") ? fields.array("heads").map(head) : [];
  const greatest = Math.max(previous, ...heads.map((one) => one.counter));
  if (greatest >= mostCounter(epoch)) throw new FormatError("counter_limit");
  return { previous, heads, counter: greatest + 1 };
}

function head(value: Value): Head {
  const [stream, index, chain, counter] = asRow(value, 4, MALFORMED);
  return {
    stream: asBytes(stream, 16, MALFORMED),
    index: asInteger(index, 0, 2 ** 32 - 1, MALFORMED),
    chain: asBytes(chain, 32, MALFORMED),
    counter: counterOf(counter),
  };
}

/** A counter beyond the safe integers comes out as infinite: it makes the record's own one too many just as well. */
function counterOf(value: Value | undefined): number {
  if (typeof value === "bigint" && value > 0n) return Infinity;
  return asInteger(value, 0, BELOW_2_53, MALFORMED);
}

export function operationValues(map: ValueMap): readonly Value[] {
  return map.has("operations") ? new Fields(map, MALFORMED).array("operations") : [];
}

export interface Fault {
  readonly code: Code;
  readonly position: number;
}

export interface Operations {
  readonly applied: readonly Applied[];
  readonly faults: readonly Fault[];
}

/** Decode the operations of a record; one that is not as it must be is named, the others count. */
export function decodeOperations(meta: Meta, place: Omit<Place, "position">, withoutStamp?: Code): Operations {
  const applied: Applied[] = [];
  const faults: Fault[] = [];
  operationValues(meta.map).forEach((value, position) => {
    try {
      const operation = decodeOperation(value, { ...place, position }, withoutStamp);
      if (operation.change.op === null) throw new FormatError("operation_unknown");
      applied.push({
        operation,
        vector: vectorOf(operation, meta.embeddings[0], (code) => faults.push({ code, position })),
      });
    } catch (error) {
      faults.push({ code: codeOf(error), position });
    }
  });
  return { applied, faults };
}

function vectorOf(
  { change }: Operation,
  column: EmbeddingColumn | undefined,
  report: (code: Code) => void,
): Vector | null {
  const row = "memory" in change ? change.memory.embedding : change.op === "embed" ? change.embedding : null;
  if (row === null) return null;
  // A row that is not there stands for no vector (section 5).
  if (!column || row >= column.rows) return null;
  try {
    return { model: column.model, values: embeddingRow(column, row) };
  } catch (error) {
    if (codeOf(error) !== "column_value") throw error;
    report("column_value");
    return null;
  }
}
