/** Reads lines of the form `Name: value`. A line without a colon is a fault. */
export function readHeaders(text: string): { name: string; value: string }[] | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return { name: line.slice(0, Math.max(colon, 0)).trim(), value: line.slice(colon + 1).trim() };
  });
  return headers.every(({ name, value }) => name !== '' && value !== '') ? headers : undefined;
}

export const headersFault = 'Write one header a line, as Name: value.';
