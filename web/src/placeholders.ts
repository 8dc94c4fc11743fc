// The same rules as `model::prompt`: `{{name}}` stands for an argument, a backslash before the braces keeps them.

const piece = /\\\{\{|\{\{\s*([A-Za-z0-9_.-]{1,64})\s*\}\}/g;

export const isArgumentName = (name: string) => /^[A-Za-z0-9_.-]{1,64}$/.test(name);

/** The names of a text's placeholders, each once. */
export function placeholders(text: string): string[] {
  const names = [...text.matchAll(piece)].flatMap((match) => (match[1] ? [match[1]] : []));
  return [...new Set(names)];
}

/** The text with its placeholders filled; one without a value becomes nothing. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(piece, (_, name: string | undefined) =>
    name === undefined ? '{{' : Object.hasOwn(values, name) ? (values[name] ?? '') : '',
  );
}

/** The variables of a URI template. */
export function templateVariables(uri: string): string[] {
  const names = [...uri.matchAll(/\{[+#]?([A-Za-z0-9_.-]{1,64})\}/g)].map((match) => match[1] ?? '');
  return [...new Set(names)];
}

/** A file as Base64. */
export function readBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(',', 2)[1] ?? '');
    reader.onerror = () => reject(reader.error ?? new Error('The file cannot be read.'));
    reader.readAsDataURL(file);
  });
}
