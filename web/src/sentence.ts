/** "the body is XML" → "The body is XML.": texts that a list or an error embeds stand alone in the console. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  // A name in backticks keeps its case.
  const begun = `${trimmed.slice(0, 1).toUpperCase()}${trimmed.slice(1)}`;
  return /[.!?…:]$/.test(begun) ? begun : `${begun}.`;
}
