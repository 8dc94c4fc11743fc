/**
 * The form of a value in a mirrored header: plain where a header can hold it, else base64 of UTF-8 between
 * `=?base64?` and `?=`.
 */
export function mirrored(value: string): string {
  const plain = /^[\x20-\x7e]*$/.test(value) && value === value.trim();
  if (plain && !(value.startsWith('=?base64?') && value.endsWith('?='))) return value;
  const bytes = new TextEncoder().encode(value);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}?=`;
}
