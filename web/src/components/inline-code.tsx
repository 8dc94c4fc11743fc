/** Text of a document in which `backticks` mark code, as OpenAPI descriptions do. */
export function InlineCode({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts have only their order
    index % 2 === 1 ? <code key={index}>{part}</code> : part,
  );
}
