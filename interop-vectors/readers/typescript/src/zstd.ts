/** One zstd frame of declared size (vault-format, section 5, "Compression"). */

import { decompress } from "fzstd";
import { xxhash64 } from "hash-wasm";

import { type Bytes, concat, equal, readU32, view } from "./bytes.js";
import { FormatError } from "./errors.js";

const MAX_SIZE = 64 * 1024 * 1024;
const FREE_SIZE = 65_536;
const MAX_RATIO = 256;
const MAGIC = 0x28b52ffd;

/** Decompress exactly one frame; its declared size is checked first, its real size and checksum afterwards. */
export async function decompressFrame(stored: Uint8Array): Promise<Bytes> {
  const frame = parse(stored);
  if (frame.size > MAX_SIZE || frame.size > Math.max(FREE_SIZE, MAX_RATIO * stored.length)) {
    throw new FormatError("zstd_limit");
  }
  const output = decompressed(stored, frame);
  if (frame.checksum && !equal(frame.checksum, await checksum(output))) throw new FormatError("zstd_invalid");
  return output;
}

interface Frame {
  readonly size: number;
  readonly lastBlock: number;
  readonly blocksEnd: number;
  readonly checksum: Uint8Array | null;
}

function parse(stored: Uint8Array): Frame {
  if (stored.length < 5 || readU32(stored, 0) !== MAGIC) throw invalid();
  const descriptor = stored[4]!;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  if (descriptor & 0x0b) throw invalid(); // the reserved bit, or a dictionary
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  const sizeStart = isSingleSegment ? 5 : 6;
  // A frame that declares no size could become anything.
  if (sizeBytes === 0) throw new FormatError("zstd_limit");
  if (stored.length < sizeStart + sizeBytes) throw invalid();
  const size = declaredSize(stored, sizeStart, sizeBytes);
  const { lastBlock, end } = blocks(stored, sizeStart + sizeBytes);
  const checksumSize = descriptor & 0x04 ? 4 : 0;
  if (stored.length !== end + checksumSize) throw invalid();
  return { size, lastBlock, blocksEnd: end, checksum: checksumSize ? stored.subarray(end) : null };
}

function declaredSize(stored: Uint8Array, start: number, bytes: number): number {
  const data = view(stored);
  if (bytes === 1) return data.getUint8(start);
  if (bytes === 2) return data.getUint16(start, true) + 256;
  if (bytes === 4) return data.getUint32(start, true);
  return Number(data.getBigUint64(start, true));
}

function blocks(stored: Uint8Array, start: number): { lastBlock: number; end: number } {
  for (let offset = start; ;) {
    if (offset + 3 > stored.length) throw invalid();
    const header = stored[offset]! | (stored[offset + 1]! << 8) | (stored[offset + 2]! << 16);
    const type = (header >> 1) & 3;
    const size = type === 1 ? 1 : header >> 3;
    if (type === 3 || offset + 3 + size > stored.length) throw invalid();
    if (header & 1) return { lastBlock: offset, end: offset + 3 + size };
    offset += 3 + size;
  }
}

const MARK = Uint8Array.from({ length: 32 }, (_, i) => 0x5a ^ (37 * i));

/**
 * fzstd does not say how much a frame really made. So the last block is made the one before the last, and a raw block
 * with a mark stands after it: the mark must end up exactly where the declared size says.
 */
function decompressed(stored: Uint8Array, frame: Frame): Bytes {
  const body = stored.slice(0, frame.blocksEnd);
  body[frame.lastBlock]! &= 0xfe;
  body[4]! &= 0xfb;
  const markHeader = (MARK.length << 3) | 1;
  const input = concat(body, Uint8Array.of(markHeader & 0xff, markHeader >> 8, 0), MARK);
  const output = new Uint8Array(frame.size + MARK.length);
  try {
    decompress(input, output);
  } catch {
    throw invalid(); // fzstd's errors are plain ones, and a RangeError where a block overflows
  }
  if (!equal(output.subarray(frame.size), MARK)) throw invalid();
  return output.slice(0, frame.size);
}

/** The lower 32 bits of XXH64, little-endian. */
async function checksum(output: Uint8Array): Promise<Uint8Array> {
  const hash = await xxhash64(output);
  return Uint8Array.from(hash.slice(8).match(/../g)!.reverse(), (pair) => parseInt(pair, 16));
}

function invalid(): FormatError {
  return new FormatError("zstd_invalid");
}
