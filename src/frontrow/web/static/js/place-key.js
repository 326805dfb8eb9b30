// @ts-check
/** The key that a place in the waiting room is bound to, so that a copied place is worthless. Nobody can export it, not
 * even this page. The waiting room's page keeps its keys in the same store and proves by them whose place it is. */
const MOST_MS = 1000;

/** @param {ArrayBuffer} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=/g, "");

/** @param {string} event @param {CryptoKeyPair} pair */
const keep = (event, pair) =>
  new Promise((done, failed) => {
    const opening = indexedDB.open("frontrow", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("k");
    opening.onerror = failed;
    opening.onsuccess = () => {
      const put = opening.result.transaction("k", "readwrite").objectStore("k").put(pair, event);
      put.onsuccess = done;
      put.onerror = failed;
    };
  });

/** @param {string} event */
async function make(event) {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  await keep(event, pair);
  const { crv, kty, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  return base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify({ crv, kty, x, y }))));
}

/**
 * Make the key for a place of this event; its RFC 7638 thumbprint, or nothing where a browser cannot.
 * @param {string} event
 * @returns {Promise<string>}
 */
export const makePlaceKey = (event) =>
  Promise.race([make(event).catch(() => ""), new Promise((give_up) => setTimeout(() => give_up(""), MOST_MS))]);
