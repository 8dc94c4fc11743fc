/** Public keys as the API takes them: an https URL, or a JWK set in JSON. Null for any other text. */
export function readPublicKeys(
  input: string,
): { jwks_uri: string } | { jwks: Record<string, unknown> } | null {
  const text = input.trim();
  if (text.startsWith('https://')) return { jwks_uri: text };
  try {
    return { jwks: JSON.parse(text) as Record<string, unknown> };
  } catch {
    return null;
  }
}

/** The fault of a text that must hold public keys. */
export const publicKeysFault = (input: string) =>
  readPublicKeys(input) ? null : 'Enter an https URL or a JWK set in JSON.';

/** The field of a refusal, where one field takes both forms of public keys. */
export const publicKeysField = ({ field }: { field?: string | undefined }) =>
  field === 'jwks' || field === 'jwks_uri' ? 'keys' : field;
