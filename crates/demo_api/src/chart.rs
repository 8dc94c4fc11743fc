//! A small harbour chart as a PNG: land, water by depth, and the berths as dots. Drawn from the port's own numbers, so that
//! each port always looks the same.

use crate::harbours::Port;

const WIDTH: usize = 240;
const HEIGHT: usize = 160;

/// Palette: deep, middle and shallow water, beach, land, quay, berth, berth with shore power.
const PALETTE: [[u8; 3]; 8] = [
    [158, 202, 225],
    [189, 215, 231],
    [222, 235, 247],
    [253, 231, 164],
    [236, 213, 150],
    [120, 110, 95],
    [203, 64, 66],
    [44, 122, 62],
];

/// The chart as bytes of a PNG file.
pub(crate) fn draw(port: &Port) -> Vec<u8> {
    let mut pixels = vec![0_u8; WIDTH * HEIGHT];
    for (n, pixel) in pixels.iter_mut().enumerate() {
        *pixel = ground(port, n % WIDTH, n / WIDTH);
    }
    let mut x = 30;
    for berth in port.berths {
        let length = (berth.length_m as usize / 10).min(WIDTH - 20);
        // The quay lies on the shore line of its column.
        let y = (0..HEIGHT)
            .find(|y| pixels[y * WIDTH + x] >= 3)
            .unwrap_or(HEIGHT - 8)
            .min(HEIGHT - 8);
        let mark = if berth.shore_power { 7 } else { 6 };
        fill(&mut pixels, x, y, length, 2, 5);
        fill(&mut pixels, x + length / 2, y.saturating_sub(4), 5, 4, mark);
        x = (x + length + 14).min(WIDTH - 30);
    }
    encode(&pixels)
}

fn fill(pixels: &mut [u8], x: usize, y: usize, width: usize, height: usize, colour: u8) {
    for row in y..(y + height).min(HEIGHT) {
        let start = row * WIDTH + x.min(WIDTH);
        let end = row * WIDTH + (x + width).min(WIDTH);
        pixels[start..end].fill(colour);
    }
}

/// Water or land at a place: a few waves whose phase comes from the position of the port.
#[expect(clippy::cast_precision_loss, reason = "coordinates of a small picture")]
fn ground(port: &Port, x: usize, y: usize) -> u8 {
    let (x, y) = (x as f64 / WIDTH as f64, y as f64 / HEIGHT as f64);
    let shore = 0.62
        + 0.10 * (x * 7.0 + port.latitude).sin()
        + 0.06 * (x * 17.0 + port.longitude).sin()
        + 0.03 * (x * 41.0 + port.latitude * port.longitude).cos();
    let above = y - shore;
    let shelf = 0.6 / port.max_draught_m;
    match above {
        _ if above > 0.03 => 4,
        _ if above > 0.0 => 3,
        _ if above > -shelf => 2,
        _ if above > -shelf * 5.0 => 1,
        _ => 0,
    }
}

/// PNG with a palette, eight bits a pixel, rows without filter, data in stored blocks: the smallest encoder there is.
fn encode(pixels: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(pixels.len() + HEIGHT);
    for row in pixels.chunks(WIDTH) {
        raw.push(0);
        raw.extend_from_slice(row);
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&be(WIDTH));
    header.extend_from_slice(&be(HEIGHT));
    header.extend_from_slice(&[8, 3, 0, 0, 0]);
    chunk(&mut png, *b"IHDR", &header);
    chunk(&mut png, *b"PLTE", PALETTE.as_flattened());
    chunk(&mut png, *b"IDAT", &zlib_stored(&raw));
    chunk(&mut png, *b"IEND", &[]);
    png
}

fn be(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend_from_slice(&be(data.len()));
    let start = png.len();
    png.extend_from_slice(&kind);
    png.extend_from_slice(data);
    let sum = crc32fast::hash(&png[start..]);
    png.extend_from_slice(&sum.to_be_bytes());
}

/// RFC 1950 around stored blocks of RFC 1951.
fn zlib_stored(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let blocks = raw.chunks(0xffff);
    let last = blocks.len();
    for (n, block) in blocks.enumerate() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(n + 1 == last));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in raw {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend_from_slice(&((b << 16) | a).to_be_bytes());
    out
}
