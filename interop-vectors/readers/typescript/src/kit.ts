/** The emergency kit and the recovery code as text (vault-format, section 7). */

import { type Bytes, concat, equal, readU32, utf8 } from "./bytes.js";
import { FormatError } from "./errors.js";
import { sha256, WHITE_SPACE } from "./primitives.js";

export interface Kit {
  readonly vaultId: Bytes;
  readonly secret: Bytes;
  readonly generation: number;
  readonly server: string;
}

export function parseKit(text: string): Kit {
  return parse(text, { prefix: "MSEAL1", version: 1, secretSize: 16, check: "memseal/v1/kit" });
}

export function parseRecovery(text: string): Kit {
  return parse(text, { prefix: "MSEAL1R", version: 2, secretSize: 32, check: "memseal/v1/recovery" });
}

interface Shape {
  readonly prefix: string;
  readonly version: number;
  readonly secretSize: number;
  readonly check: string;
}

function parse(text: string, shape: Shape): Kit {
  const letters = plain(text.replace(WHITE_SPACE, "").replaceAll("-", ""));
  if (!letters.startsWith(plain(shape.prefix))) throw malformed();
  const bytes = decodeBase32(letters.slice(shape.prefix.length));
  const secretEnd = 17 + shape.secretSize;
  if (bytes.length < 1 + 4) throw malformed();
  const [body, check] = [bytes.subarray(0, -4), bytes.subarray(-4)];
  if (!equal(sha256(utf8(shape.check), body).subarray(0, 4), check)) throw malformed();
  if (body[0] !== shape.version) throw new FormatError("kit_version");
  if (body.length < secretEnd + 4) throw malformed();
  return {
    vaultId: body.slice(1, 17),
    secret: body.slice(17, secretEnd),
    generation: readU32(body, secretEnd),
    server: serverText(body.subarray(secretEnd + 4)),
  };
}

/** Letters that look alike are one, in the prefix too. */
function plain(letters: string): string {
  const capitals = letters.replace(/[a-z]/g, (letter) => letter.toUpperCase());
  return capitals.replaceAll("O", "0").replace(/[IL]/g, "1");
}

function malformed(): FormatError {
  return new FormatError("kit_malformed");
}

function serverText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed();
  }
}

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

function decodeBase32(letters: string): Bytes {
  const bytes = new Uint8Array(Math.floor((letters.length * 5) / 8));
  let [buffer, bits, size] = [0, 0, 0];
  for (const letter of letters) {
    const value = ALPHABET.indexOf(letter);
    if (value < 0) throw malformed();
    buffer = ((buffer << 5) | value) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[size++] = (buffer >> bits) & 0xff;
    }
  }
  // Fewer than a letter's bits may be left over, and only zeros: else two texts would be one kit.
  if (bits >= 5 || buffer & ((1 << bits) - 1)) throw malformed();
  return concat(bytes);
}
