// PNG files with a palette: a picture of a page takes a third of the bytes of its 24-bit form (RFC 2083).
import { crc32, deflateSync, inflateSync } from "node:zlib";

const signature = Buffer.from("89504e470d0a1a0a", "hex");
const shades = 256;

function* chunks(png) {
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield { type: png.toString("latin1", at + 4, at + 8), body: png.subarray(at + 8, at + 8 + length) };
    at += 12 + length;
  }
}

function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type, "latin1"), body]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(body.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}

/** Section 6.6: the predictor of Paeth. */
function paeth(left, above, corner) {
  const sum = left + above - corner;
  const [byLeft, byAbove, byCorner] = [left, above, corner].map((one) => Math.abs(sum - one));
  if (byLeft <= byAbove && byLeft <= byCorner) return left;
  return byAbove <= byCorner ? above : corner;
}

/** Section 6: the bytes of the pixels, from lines that each begin with their filter. */
function unfiltered(lines, stride, size) {
  const height = lines.length / (stride + 1);
  const pixels = Buffer.alloc(height * stride);
  for (let y = 0; y < height; y += 1) {
    const filter = lines[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x;
      const left = x >= size ? pixels[at - size] : 0;
      const above = y > 0 ? pixels[at - stride] : 0;
      const corner = x >= size && y > 0 ? pixels[at - stride - size] : 0;
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      pixels[at] = lines[y * (stride + 1) + 1 + x] + guess;
    }
  }
  return pixels;
}

const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];

const distance = (one, other) => parts(one).reduce((sum, part, place) => sum + (part - parts(other)[place]) ** 2, 0);

/**
 * A palette, and the place of each colour in it. The most frequent colours fill half of it. Then comes each time the
 * colour that is farthest from all of them, so that a rare red stays red.
 */
function choose(counts) {
  const frequent = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour);
  const nearest = new Map(frequent.map((colour) => [colour, { place: 0, away: Infinity }]));
  const palette = [];
  const add = (chosen) => {
    const place = palette.push(chosen) - 1;
    for (const colour of frequent) {
      const away = distance(colour, chosen);
      if (away < nearest.get(colour).away) nearest.set(colour, { place, away });
    }
  };
  frequent.slice(0, shades / 2).forEach(add);
  while (palette.length < shades) {
    const farthest = frequent.reduce((one, other) => (nearest.get(other).away > nearest.get(one).away ? other : one));
    if (nearest.get(farthest).away === 0) break;
    add(farthest);
  }
  return { palette, places: new Map([...nearest].map(([colour, { place }]) => [colour, place])) };
}

/** The same picture with a palette. Takes what Chromium writes: 8 bits of red, green and blue, not interlaced. */
export function small(png) {
  const all = [...chunks(png)];
  const header = Buffer.from(all[0].body);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (header[8] !== 8 || header[9] !== 2 || header[12] !== 0) throw new Error("a PNG of another form");
  const data = Buffer.concat(all.filter(({ type }) => type === "IDAT").map(({ body }) => body));
  const pixels = unfiltered(inflateSync(data), width * 3, 3);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 3) {
    const colour = pixels.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const { palette, places } = choose(counts);
  const lines = Buffer.alloc(height * (width + 1));
  for (let at = 0; at < width * height; at += 1) {
    lines[at + Math.floor(at / width) + 1] = places.get(pixels.readUIntBE(at * 3, 3));
  }
  // Type 3: each pixel is a place in the palette.
  header[9] = 3;
  return Buffer.concat([
    signature, chunk("IHDR", header), chunk("PLTE", Buffer.from(palette.flatMap(parts))),
    chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0)),
  ]);
}
