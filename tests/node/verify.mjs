// Verify a JWT with npm jose: stdin {jwt, secret (base64url) | jwks, algorithms, audience}; prints the claims or {error}.
import { createLocalJWKSet, jwtVerify } from "jose";
let text = "";
for await (const chunk of process.stdin) text += chunk;
const asks = JSON.parse(text);
const answers = [];
for (const ask of asks) {
  const key = ask.secret ? Buffer.from(ask.secret, "base64url") : createLocalJWKSet(ask.jwks);
  try {
    answers.push((await jwtVerify(ask.jwt, key, { algorithms: ask.algorithms, audience: ask.audience })).payload);
  } catch (error) {
    answers.push({ error: error.code });
  }
}
console.log(JSON.stringify(answers));
