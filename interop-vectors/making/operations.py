"""What a runner does for a case: every operation's level, inputs and outputs; the schema is made from this table."""

from dataclasses import dataclass
from typing import Any

Fields = dict[str, str]


@dataclass(frozen=True)
class Operation:
    """One thing that a runner can be asked for; a `?` after a type: the member may be null."""

    level: str
    says: str
    takes: Fields
    gives: Fields


READER, CLIENT = "reader", "syncing client"

OPERATIONS: dict[str, Operation] = {
    # ── primitives, §2 ──
    "derive": Operation(
        READER,
        "HKDF-SHA-512 as in §2",
        {"ikm": "bytes", "salt": "bytes", "label": "text", "parts": "[bytes]"},
        {"output": "bytes"},
    ),
    "stretch": Operation(
        READER,
        "refuse an empty passphrase, then a cost out of bounds; then Argon2id over the NFC form",
        {"passphrase": "text", "salt": "bytes", "cost": "cost"},
        {"output": "bytes"},
    ),
    "unwrap": Operation(
        READER,
        "open one HPKE message; `public` is the public wrapping key of `seed`. What does not open is `box_sealed`",
        {"seed": "bytes", "info": "bytes", "wrapped": "bytes"},
        {"content": "bytes", "public": "bytes"},
    ),
    "check_signing_key": Operation(
        READER,
        "refuse a public signing key that is not sound (§2), as the keyring would (`keyring_malformed`)",
        {"key": "bytes"},
        {},
    ),
    "verify": Operation(
        READER,
        "verify one Ed25519 signature (§2: without the cofactor); a wrong one is `signature_invalid`",
        {"public": "bytes", "message": "bytes", "signature": "bytes"},
        {},
    ),
    # ── containers, §3 to §5a ──
    "decode_preamble": Operation(
        READER,
        "check the beginning of a container of which `kind` is expected, up to `vault_mismatch`; "
        "`vault_id` null: any vault's",
        {"content": "bytes", "kind": "int", "vault_id": "bytes?"},
        {"epoch": "int", "vault_id": "bytes", "stream_id": "bytes", "nonce": "bytes"},
    ),
    "place_log": Operation(
        READER,
        "check a log's preamble (§3, all of it) against a keyring. `versions` are accepted already, the last is the "
        "newest; `vault_keys` = [[epoch, vault key], …] are those known; `name` is the file's, the stream id. `owner` "
        "is the signing key, `key` the log key; `limit` is null, or where the stream of an ended owner ends "
        "(length, records and chain; 0, 0 and no bytes for a stream that `ended` does not name)",
        {"content": "bytes", "name": "bytes", "versions": "[bytes]", "vault_keys": "[[value]]"},
        {"owner": "bytes", "key": "bytes", "limit": "end?"},
    ),
    "walk_records": Operation(
        READER,
        "walk a container's record headers strictly, from after the preamble to the end; "
        "`records` = [[offset of the header, length of the body], …]",
        {"content": "bytes"},
        {"records": "[[int]]"},
    ),
    "open_record": Operation(
        READER,
        "open one record, header and body, that should be record `index` of a container that begins with `preamble`",
        {"key": "bytes", "preamble": "bytes", "index": "int", "record": "bytes"},
        {"content": "bytes"},
    ),
    "pad": Operation(
        "writer",
        "say how long the plaintext of a content of `length` bytes is, length word counted",
        {"length": "int"},
        {"padded": "int"},
    ),
    "scan": Operation(
        READER,
        "walk the headers of a log that may be damaged; `records` = [[index, offset, length of the body], …], "
        "`damaged` = [[offset, end], …] in their order. The findings are the reasons of the damaged ranges; one that "
        "reaches the end of the file and begins with a record that is not complete is `record_torn`",
        {"content": "bytes"},
        {"records": "[[int]]", "damaged": "[[int]]"},
    ),
    "decompress": Operation(
        READER,
        "check and decompress one zstd frame as meta is stored (§5, flag 4)",
        {"frame": "bytes"},
        {"content": "bytes"},
    ),
    "decode_msgpack": Operation(READER, "decode one value (§9)", {"content": "bytes"}, {"value": "value"}),
    "decode_content": Operation(
        READER,
        "take apart the content of a log's record (§5); the signature is not verified. `meta` is the map without its "
        "`columns`; of `columns` those of known name and type, `content` their raw bytes",
        {"content": "bytes", "preamble": "bytes", "index": "int"},
        {"chain": "bytes", "signed": "bool", "more": "bool", "meta": "value", "columns": "[column]"},
    ),
    "read_column": Operation(
        READER,
        "say which rows of an `f2` embedding column can be used (§5); `usable` are their numbers",
        {"content": "bytes", "width": "int"},
        {"usable": "[int]"},
    ),
    "read_log": Operation(
        READER,
        "read a whole log: scan, open, chain, signatures. `trusted` are the indexes of records that a valid signature "
        "covers, `waiting` those at the end that wait for one; what is in neither is quarantined or lost. `end` is "
        "where the log ends: after the last whole record, `chain` null where it cannot be known; `torn` the number of "
        "bytes after it of a record that is not complete; `appendable` whether its owner may go on after `end`: "
        "nothing after `end` and not the last record is damaged otherwise than torn",
        {"content": "bytes", "key": "bytes", "owner": "bytes"},
        {"trusted": "[int]", "waiting": "[int]", "end": "end", "torn": "int", "appendable": "bool"},
    ),
    "open_base": Operation(
        READER,
        "check the base of a log without its beginning (§5a) against the floors of accepted versions",
        {"content": "bytes", "versions": "[bytes]"},
        {"length": "int", "records": "int", "chain": "bytes", "counter": "int"},
    ),
    # ── keyring, kit, device, §7 and §8 ──
    "decode_keyring": Operation(
        READER,
        "take one version apart: limits, framing, rule K1. `whole`: it has its sealed part",
        {"content": "bytes", "vault_id": "bytes?"},
        {"version": "int", "epoch": "int", "digest": "bytes", "active": "[bytes]", "whole": "bool"},
    ),
    "accept_keyring": Operation(
        READER,
        "accept the versions one after the other, from the first on (K1–K10). All but the last are sound; an error is "
        "the last one's. `active` are the ids of its active devices",
        {"versions": "[bytes]", "vault_id": "bytes"},
        {"version": "int", "epoch": "int", "digest": "bytes", "active": "[bytes]"},
    ),
    "open_box": Operation(
        READER,
        "open a device's box in a version: `seed` is its private wrapping key, `sign` its public signing key",
        {"version": "bytes", "seed": "bytes", "sign": "bytes"},
        {"vault_key": "bytes"},
    ),
    "open_secrets": Operation(
        READER,
        "open record 3 of a version; `names` = {device id: name}, `history` = [[epoch, vault key], …]",
        {"version": "bytes", "vault_key": "bytes"},
        {"history": "[[value]]", "names": "map", "kit_secret": "bytes"},
    ),
    "parse_kit": Operation(
        READER,
        "read an emergency kit that somebody typed",
        {"text": "text"},
        {"vault_id": "bytes", "secret": "bytes", "generation": "int", "server": "text"},
    ),
    "parse_recovery": Operation(
        READER,
        "read a recovery code that somebody typed",
        {"text": "text"},
        {"vault_id": "bytes", "secret": "bytes", "generation": "int", "server": "text"},
    ),
    "open_kit": Operation(
        READER,
        "open the vault with kit and passphrase: the newest version's kit slot, `slot_mismatch`, acceptance from "
        "version 1 to the newest (`versions`: all of them, the newest whole), the kit's box",
        {"versions": "[bytes]", "kit": "text", "passphrase": "text"},
        {"vault_key": "bytes"},
    ),
    "open_recovery": Operation(
        READER,
        "the same with a recovery code alone",
        {"versions": "[bytes]", "code": "text"},
        {"vault_key": "bytes"},
    ),
    "open_device": Operation(
        READER,
        "open a device file with a passphrase, for the keyring `versions` (accepted already; the last counts): the "
        "key set that it lists",
        {"content": "bytes", "versions": "[bytes]", "passphrase": "text"},
        {"device_id": "bytes", "sign": "bytes", "wrap": "bytes", "local": "bytes"},
    ),
    # ── checkpoint, media, bundle, §8b to §8d ──
    "open_manifest": Operation(
        READER,
        "open the manifest that the newest floor of `versions` names, and check it against that floor; `content` null: "
        "it is not there. `vault_keys` as in `place_log`",
        {"content": "bytes?", "versions": "[bytes]", "vault_keys": "[[value]]"},
        {"made_by": "bytes", "counter": "int", "logs": "[[value]]", "parts": "[[value]]"},
    ),
    "open_part": Operation(
        READER,
        "open the part that a manifest's row and `counter` describe; `content` null: it is not there. `records` says "
        "how many of its records opened, `operations` how many sound operations they have",
        {"content": "bytes?", "vault_id": "bytes", "row": "[value]", "counter": "int"},
        {"records": "int", "operations": "int"},
    ),
    "open_media": Operation(
        READER,
        "open a media item as a memory names it (`named`: id, key, bytes, digest)",
        {"content": "bytes", "vault_id": "bytes", "named": "map"},
        {"digest": "bytes"},
    ),
    "open_bundle": Operation(
        READER,
        "open a bundle with its passphrase; `memories` as in `merge`",
        {"content": "bytes", "passphrase": "text"},
        {"memories": "[memory]"},
    ),
    "open_traces": Operation(
        READER,
        "read a file of traces (§8e); `local` is the device's local key, `nonce` the one that names the file. `traces` "
        "are those that could be read, with all their fields",
        {"content": "bytes", "nonce": "bytes", "local": "bytes", "vault_id": "bytes", "device_id": "bytes"},
        {"traces": "[value]"},
    ),
    "open_session": Operation(
        READER,
        "open a kept session (§8f) with the session secret; `id` is the one that names the file",
        {"content": "bytes", "id": "bytes", "secret": "bytes", "vault_id": "bytes", "device_id": "bytes"},
        {"session_name": "text", "session": "value"},
    ),
    # ── operations and state, §9 and §10 ──
    "decode_meta": Operation(
        READER,
        "read the meta (msgpack) of a record of this epoch: its heads and its own counter; "
        "the operations are not decoded",
        {"content": "bytes", "epoch": "int"},
        {"counter": "int", "heads": "[[value]]", "operations": "int"},
    ),
    "decode_operation": Operation(
        READER,
        "read one operation (msgpack) that stands at `position` in a record of this counter; "
        "`stamp` = [counter, position]. One that is not known is given back with the finding `operation_unknown`",
        {"content": "bytes", "counter": "int", "position": "int"},
        {"op": "text", "id": "bytes", "stamp": "[int]"},
    ),
    "merge": Operation(
        READER,
        "apply the operations of some records, `records` = metas (msgpack) of an epoch that allows all counters below "
        "2^53, in this order and in any other: the result is the same. `memories` are sorted by id; `erased` are the "
        "ids that an erase names, sorted; "
        "`settings` = {name: value}",
        {"records": "[bytes]"},
        {"memories": "[memory]", "erased": "[bytes]", "settings": "{value}"},
    ),
    "open_vault": Operation(
        READER,
        "open a vault's folder, given as {name: content of the file}, with a passphrase; everything is checked, and "
        "what the device file's marks say is left aside, traces and kept sessions too; `memories` as in `merge`. "
        "Findings are those of all other files",
        {"files": "{bytes}", "passphrase": "text"},
        {"memories": "[memory]"},
    ),
    # ── sync ──
    "compare_branches": Operation(
        CLIENT,
        "compare a device's keyring with a server's that is another (§7, *Branches*); the versions of both are "
        "accepted already. `common` is the last version that both have; `follows`: whether the device goes over to "
        "the server's without being asked; `ends`: the signing keys, sorted, that a version which it makes to join "
        "both has to end",
        {"own": "[bytes]", "there": "[bytes]"},
        {"common": "int", "follows": "bool", "ends": "[bytes]"},
    ),
    "parse_pairing": Operation(
        CLIENT,
        "read a pairing code that somebody typed or a camera read (sync-protocol §9)",
        {"text": "text"},
        {"channel": "int", "secret": "bytes", "server": "text"},
    ),
    "agree": Operation(
        CLIENT,
        "one side (`A` or `B`) of SPAKE2 under a code: `random`, 64 bytes as a big-endian number modulo the group's "
        "order, is its scalar, `own` its element, `element` the other side's, `key` is K",
        {"side": "text", "code": "text", "random": "bytes", "element": "bytes"},
        {"own": "bytes", "key": "bytes"},
    ),
    "open_hello": Operation(
        CLIENT,
        "what the shower that drew `random` makes of J1",
        {"code": "text", "random": "bytes", "answer": "bytes"},
        {"device_id": "bytes", "sign": "bytes", "wrap": "bytes", "device_name": "text"},
    ),
    "open_welcome": Operation(
        CLIENT,
        "what the joiner that drew `random`, and answered S1 (`opening`) with J1 (`answer`), makes of S2; `seed`, "
        "`device_id` and `sign` are its private wrapping key, id and public signing key",
        {
            "code": "text",
            "random": "bytes",
            "opening": "bytes",
            "answer": "bytes",
            "welcome": "bytes",
            "seed": "bytes",
            "device_id": "bytes",
            "sign": "bytes",
        },
        {
            "vault": "bytes",
            "sign": "bytes",
            "version": "int",
            "digest": "bytes",
            "epoch": "int",
            "vault_key": "bytes",
        },
    ),
    "check_joined": Operation(
        CLIENT,
        "what the shower that drew `random`, and answered J1 (`answer`) with S2 (`welcome`), makes of J2",
        {"code": "text", "random": "bytes", "answer": "bytes", "welcome": "bytes", "joined": "bytes"},
        {"version": "int", "digest": "bytes"},
    ),
    "decode_segment": Operation(
        CLIENT,
        "take a segment apart (sync-protocol §1)",
        {"content": "bytes"},
        {"start": "end", "length": "int"},
    ),
    "sync": Operation(
        CLIENT,
        "one round of the device whose vault is in `files` with a remote; see *Rounds* below. `memories` are those "
        "that the device has after it, `puts` the paths that it put, sorted, each once",
        {"files": "{bytes}", "passphrase": "text", "seen": "map?", "remote": "remote"},
        {"memories": "[memory]", "puts": "[text]"},
    ),
}

# ── schema ──────────────────────────────────────────────────────────────────────────────────────────

Schema = dict[str, Any]

_BYTES: Schema = {"$ref": "#/$defs/bytes"}
_TYPES: dict[str, Schema] = {
    "bytes": _BYTES,
    "int": {"type": "integer"},
    "text": {"type": "string"},
    "bool": {"type": "boolean"},
    "map": {"type": "object"},
    "value": {"$ref": "#/$defs/value"},
    "cost": {"$ref": "#/$defs/cost"},
    "end": {"$ref": "#/$defs/end"},
    "column": {"$ref": "#/$defs/column"},
    "memory": {"$ref": "#/$defs/memory"},
    "remote": {"$ref": "#/$defs/remote"},
}


def _typed(name: str) -> Schema:
    if name.endswith("?"):
        return {"anyOf": [_typed(name[:-1]), {"type": "null"}]}
    if name.startswith("{"):
        return {"type": "object", "additionalProperties": _typed(name[1:-1])}
    if name.startswith("["):
        return {"type": "array", "items": _typed(name[1:-1])}
    return _TYPES[name]


def _object(fields: Fields) -> Schema:
    return {
        "type": "object",
        "properties": {name: _typed(kind) for name, kind in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


_DEFS: Schema = {
    "bytes": {
        "description": "hex; a file's content, path from this folder; one after the other; one many times",
        "anyOf": [
            {"type": "string", "pattern": "^([0-9a-f]{2})*$"},
            _object({"file": "text"}),
            {
                "type": "object",
                "properties": {"join": {"type": "array", "items": _BYTES, "minItems": 1}},
                "required": ["join"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"repeat": _BYTES, "times": {"type": "integer", "minimum": 0}},
                "required": ["repeat", "times"],
                "additionalProperties": False,
            },
        ],
    },
    "value": {
        "description": "a msgpack value: bytes, maps, floats and large integers are tagged",
        "anyOf": [
            {"type": ["null", "boolean", "string"]},
            {"type": "integer", "minimum": -(2**53) + 1, "maximum": 2**53 - 1},
            {"type": "array", "items": {"$ref": "#/$defs/value"}},
            _object({"bytes": "text"}),
            _object({"int": "text"}),
            _object({"float": "text"}),
            {
                "type": "object",
                "properties": {"map": {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}}},
                "required": ["map"],
                "additionalProperties": False,
            },
        ],
    },
    "cost": _object({"name": "text", "memory": "int", "passes": "int", "lanes": "int"}),
    "end": _object({"length": "int", "records": "int", "chain": "bytes?"}),
    "column": _object({"name": "text", "model": "text", "width": "int", "rows": "int", "content": "bytes"}),
    "remote": _object({"heads": "[map?]", "objects": "{bytes}", "put": "text?"}),
    "memory": _object(
        {
            "id": "bytes",
            "content": "text",
            "kind": "text",
            "tags": "[text]",
            "active": "bool",
            "retracted": "bool",
            "superseded_by": "bytes?",
            "conflicts": "[bytes]",
        }
    ),
}


def schema(codes: list[str]) -> Schema:
    """Return the JSON schema of the manifest; `codes` are those of errors.md."""
    error = {"type": "object", "properties": {"error": {"enum": codes}}, "required": ["error"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memseal interop vectors",
        "type": "object",
        "properties": {
            "format": {"const": 1},
            "cases": {"type": "array", "items": {"$ref": "#/$defs/case"}, "minItems": 1},
        },
        "required": ["format", "cases"],
        "additionalProperties": False,
        "$defs": {
            "case": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "pattern": "^[a-z]+/[a-z0-9-]+$"},
                    "title": {"type": "string", "minLength": 1},
                    "rule": {"type": "string", "pattern": "^(vault-format|sync-protocol) §[0-9]+[a-f]?( K[0-9]+)?$"},
                    "operation": {"enum": list(OPERATIONS)},
                    "input": {"type": "object"},
                    "expect": {"type": "object"},
                },
                "required": ["id", "title", "rule", "operation", "input", "expect"],
                "additionalProperties": False,
                "allOf": [_case(name, operation, error, codes) for name, operation in OPERATIONS.items()],
            },
            **_DEFS,
        },
    }


def _case(name: str, operation: Operation, error: Schema, codes: list[str]) -> Schema:
    findings = {"type": "array", "items": {"enum": codes}, "minItems": 1, "uniqueItems": True}
    ok = {
        "type": "object",
        "properties": {"ok": _object(operation.gives), "findings": findings},
        "required": ["ok"],
        "additionalProperties": False,
    }
    return {
        "if": {"properties": {"operation": {"const": name}}},
        "then": {
            "properties": {
                "input": _object(operation.takes),
                "expect": {"anyOf": [{**error, "additionalProperties": False}, ok]},
            }
        },
    }
