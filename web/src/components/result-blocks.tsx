import type { ContentBlock } from '../api/tools';
import { isObject } from '../json-schema';
import { CodeBlock } from './copy';
import { Block, pretty } from './try-result';
import classes from './try-result.module.css';

/** Content blocks as a server sent them: unlike those of a trial, resources may be texts. */
export function ResultBlocks({ blocks }: { blocks: Record<string, unknown>[] }) {
  return (
    <div className={classes.blocks}>
      {blocks.map((block, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: content blocks have only their order
        <ResultBlock key={place} block={block} number={place + 1} />
      ))}
    </div>
  );
}

function ResultBlock({ block, number }: { block: Record<string, unknown>; number: number }) {
  const resource = block.type === 'resource' && isObject(block.resource) ? block.resource : undefined;
  if (resource && typeof resource.text === 'string') {
    return (
      <div>
        <p className={classes.blockTitle}>
          Resource <code>{String(resource.uri)}</code>
          {typeof resource.mimeType === 'string' ? `, ${resource.mimeType}` : ''}
        </p>
        <CodeBlock code={pretty(resource.text)} label={`text ${number}`} wrap />
      </div>
    );
  }
  const image = typeof resource?.mimeType === 'string' && resource.mimeType.startsWith('image/');
  if (image && typeof resource.blob === 'string') {
    const shown = { type: 'image', data: resource.blob, mimeType: resource.mimeType };
    return <Block block={shown as ContentBlock} number={number} />;
  }
  const known =
    (block.type === 'text' && typeof block.text === 'string') ||
    (['image', 'audio'].includes(String(block.type)) && typeof block.data === 'string') ||
    typeof resource?.blob === 'string';
  if (known) return <Block block={block as ContentBlock} number={number} />;
  return <CodeBlock code={JSON.stringify(block, null, 2)} label={`content ${number}`} wrap />;
}
