// The rules of the room as a connector reads them: which requests need a pass, and who comes in without one. The reference
// is frontrow.waitingroom.protect.connector_rules. Old rules open nothing: after a day only the staff's ways in stay.

export const RULES_LIFE_S = 86400;
const AMBIGUOUS = /\/\/|\\|%2f|%5c|%2e|%00|;|(^|\/)\.\.?(\/|$)/i;
const LISTS = ["hosts", "paths", "open_paths", "methods", "networks", "key_hashes"];

/** The document of `GET ROOM/rules`. Throws for what is not this event's rules of a version known here. */
export function readRules(told, event, nowS) {
  if (told?.kind !== "frontrow-room-rules" || told.v !== 1 || told.event !== event) throw new Error("not the rules of this event");
  const rules = { read_s: nowS, crawlers: told.crawlers ?? [] };
  for (const name of LISTS) rules[name] = told[name] ?? [];
  const lists = [...LISTS.map((name) => rules[name]), ...rules.crawlers.map((one) => one.networks)];
  const isText = (one) => typeof one === "string";
  if (!lists.every((list) => Array.isArray(list) && list.every(isText)) || !rules.crawlers.every((one) => isText(one.agent))) throw new Error("not a document of rules");
  for (const network of [...rules.networks, ...rules.crawlers.flatMap((one) => one.networks)]) if (!networkOf(network)) throw new Error("not a network");
  return rules;
}

/** Why this request needs no pass: bypass_key, bypass_network, bypass_crawler or open. Empty: it needs one. `host` is the
 * shop's own: the header `Host` is a client's word. */
export async function whyOpen(rules, host, method, target, headers, address, nowS) {
  const key = headers["frontrow-bypass"] ?? "";
  if (key && rules.key_hashes.includes(await keyHash(key))) return "bypass_key";
  if (inNetworks(address, rules.networks)) return "bypass_network";
  if (nowS >= rules.read_s + RULES_LIFE_S) return "";
  const agent = (headers["user-agent"] ?? "").toLowerCase();
  if (rules.crawlers.some((one) => agent.includes(one.agent.toLowerCase()) && inNetworks(address, one.networks))) return "bypass_crawler";
  if (rules.hosts.length && !rules.hosts.some((one) => (one.startsWith("*.") ? host.endsWith(one.slice(1)) : host === one))) return "open";
  if (rules.methods.length && method && !rules.methods.includes(method.toUpperCase())) return "open";
  return isOpenPath(rules, target.split("?", 1)[0]) ? "open" : "";
}

async function keyHash(key) {
  const raw = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`frontrow bypass:${key}`));
  return [...new Uint8Array(raw)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isOpenPath(rules, raw) {
  const path = decoded(raw);
  if (!path.startsWith("/") || AMBIGUOUS.test(raw) || AMBIGUOUS.test(path) || path.includes("%")) return false;
  if (rules.open_paths.some((one) => fits(one, raw))) return true;
  // a shop may serve /Checkout as /checkout: a protected path is protected in every spelling
  return rules.paths.length > 0 && !rules.paths.some((one) => fits(one.toLowerCase(), path.toLowerCase()));
}

/** Percent-decoded once; what is not UTF-8 is replaced. */
function decoded(raw) {
  const bytesOf = (run) => Uint8Array.from(run.slice(1).split("%"), (hex) => parseInt(hex, 16));
  return raw.replace(/(%[0-9a-f]{2})+/gi, (run) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(run)));
}

function fits(pattern, path) {
  if (!pattern.endsWith("*")) return path === pattern || path === `${pattern}/`;
  const start = pattern.slice(0, -1);
  return path.startsWith(start) || (start.endsWith("/") && path === start.slice(0, -1));
}

function inNetworks(address, networks) {
  const found = networks.length && address ? addressOf(address.split("/", 1)[0]) : null;
  return !!found && networks.map(networkOf).some(({ bits, value, shift }) => bits === found.bits && value >> shift === found.value >> shift);
}

function networkOf(text) {
  const [start, length] = text.split("/"), found = addressOf(start, false);
  const prefix = length === undefined ? found?.bits : Number(length);
  return found && Number.isInteger(prefix) && prefix >= 0 && prefix <= found.bits ? { ...found, shift: BigInt(found.bits - prefix) } : null;
}

/** An address as a number of 32 or 128 bits; IPv4 written as IPv6 is IPv4. */
function addressOf(text, unmap = true) {
  if (!text.includes(":")) {
    const parts = text.split(".");
    const good = parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && part < 256);
    return good ? { bits: 32, value: parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n) } : null;
  }
  const last = text.split("%", 1)[0].split(":").at(-1), v4 = last.includes(".") ? addressOf(last) : null;
  if (last.includes(".") && !v4) return null;
  const hex = v4 ? `${(v4.value >> 16n).toString(16)}:${(v4.value & 65535n).toString(16)}` : last;
  const [head, tail, more] = (text.split("%", 1)[0].slice(0, -last.length || undefined) + hex).split("::").map((half) => (half ? half.split(":") : []));
  const groups = tail ? [...head, ...Array(Math.max(0, 8 - head.length - tail.length)).fill("0"), ...tail] : head;
  if (more || groups.length !== 8 || (tail && head.length + tail.length > 7) || !groups.every((one) => /^[0-9a-f]{1,4}$/i.test(one))) return null;
  const value = groups.reduce((sum, one) => sum * 65536n + BigInt(`0x${one}`), 0n);
  return unmap && value >> 32n === 65535n ? { bits: 32, value: value & 0xffffffffn } : { bits: 128, value };
}
