// Writes a brotli and a gzip copy beside each text file of the build. The binary holds them and
// serves what a browser accepts, so that nothing is compressed while it is asked for.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = fileURLToPath(new URL('../dist', import.meta.url));
const text = /\.(css|html|js|json|svg|txt)$/;
let [before, after] = [0, 0];
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !text.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const bytes = readFileSync(path);
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  const gzip = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION });
  // Of small files a copy is hardly smaller.
  const worthwhile = (copy) => copy.length < bytes.length - 64;
  if (worthwhile(brotli)) writeFileSync(`${path}.br`, brotli);
  if (worthwhile(gzip)) writeFileSync(`${path}.gz`, gzip);
  before += bytes.length;
  after += worthwhile(brotli) ? brotli.length : bytes.length;
}
const kib = (bytes) => `${Math.round(bytes / 1024)} KiB`;
console.log(`texts of the build: ${kib(before)}, with brotli ${kib(after)}`);
