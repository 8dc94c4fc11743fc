import { Alert, Button, Tabs } from '@mantine/core';
import type { ContentBlock, TryResult } from '../api/tools';
import { formatDuration } from '../time';
import { Method, Status } from './badges';
import { CodeBlock } from './copy';
import { HeaderList } from './header-list';
import { JsonTree } from './json-tree';
import { faultText } from './schema-form';
import classes from './try-result.module.css';

type Exchange = NonNullable<TryResult['response']> | NonNullable<TryResult['request']>;

/** Shows the result of a try: request line, outcome, result, and both messages as sent and received. */
export function TryResultView({ result }: { result: TryResult }) {
  const faults = result.errors ?? [];
  const failed = result.is_error || !result.ok;
  const { request, response } = result;
  const structured = result.structured_content !== undefined && result.structured_content !== null;
  const blocks = <Blocks blocks={result.content} />;
  return (
    <div>
      <div className={classes.head}>
        <Status tone={failed ? 'bad' : 'good'}>
          {failed ? 'Error' : 'OK'}
          {result.status ? ` · HTTP ${result.status}` : ''}
        </Status>
        <span>{formatDuration(result.duration_ms)}</span>
      </div>
      {request && (
        <div className={classes.request}>
          <Method method={request.method} />
          <code>{request.url}</code>
        </div>
      )}
      {faults.length > 0 ? (
        <Alert color="red" data-tone="red" title="Invalid arguments">
          <ul className={classes.faults}>
            {faults.map((fault) => (
              <li key={`${fault.path}${fault.message}`}>
                <code>{fault.path || '/'}</code> {faultText(fault)}
              </li>
            ))}
          </ul>
        </Alert>
      ) : structured || request ? (
        <Tabs defaultValue={structured ? 'tree' : 'content'} keepMounted={false}>
          <Tabs.List mb="sm" aria-label="Result and messages">
            {structured && <Tabs.Tab value="tree">Structured</Tabs.Tab>}
            <Tabs.Tab value="content">Content</Tabs.Tab>
            {request && <Tabs.Tab value="request">Request</Tabs.Tab>}
            {response && <Tabs.Tab value="response">Response</Tabs.Tab>}
          </Tabs.List>
          <Tabs.Panel value="tree">
            <JsonTree value={result.structured_content} label="Structured result" />
          </Tabs.Panel>
          <Tabs.Panel value="content">{blocks}</Tabs.Panel>
          {request && (
            <Tabs.Panel value="request">
              <Message label="request" of={request} />
            </Tabs.Panel>
          )}
          {response && (
            <Tabs.Panel value="response">
              <Message label="response" of={response} />
            </Tabs.Panel>
          )}
        </Tabs>
      ) : (
        blocks
      )}
    </div>
  );
}

/** Headers and body of one message. Values of the credential are masked by the service. */
function Message({ label, of: { headers, body } }: { label: string; of: Exchange }) {
  const shown = body?.text === undefined ? 0 : new TextEncoder().encode(body.text).length;
  return (
    <div className={classes.blocks}>
      <div>
        <p className={classes.blockTitle}>Headers</p>
        <HeaderList
          label={`Headers of the ${label}`}
          headers={headers.map(({ name, value }) => [name, value])}
        />
      </div>
      <div>
        <p className={classes.blockTitle}>
          Body
          {body && `, ${formatBytes(body.bytes)}`}
          {body?.text !== undefined && shown >= shownBytes && body.bytes > shown && ' (beginning)'}
        </p>
        {!body && <p className={classes.none}>No body.</p>}
        {body && body.text === undefined && <p className={classes.none}>Not text, so it is not shown.</p>}
        {body?.text !== undefined && (
          <CodeBlock code={pretty(body.text)} label={`body of the ${label}`} wrap />
        )}
      </div>
    </div>
  );
}

/** The service shows 64 KiB of a body; the last character may not fit. */
const shownBytes = 64 * 1024 - 3;

const formatBytes = (bytes: number) =>
  bytes < 1024 ? `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}` : `${(bytes / 1024).toFixed(1)} KiB`;

function Blocks({ blocks }: { blocks: ContentBlock[] }) {
  return (
    <div className={classes.blocks}>
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: content blocks have only their order
        <Block key={index} block={block} number={index + 1} />
      ))}
    </div>
  );
}

export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function Block({ block, number }: { block: ContentBlock; number: number }) {
  if (block.type === 'text') {
    return block.text ? (
      <CodeBlock code={pretty(block.text)} label={`text ${number}`} wrap />
    ) : (
      <p className={classes.blockTitle}>Empty text.</p>
    );
  }
  if (block.type === 'image') {
    const kind = block.mimeType;
    return (
      <figure className={classes.figure}>
        <figcaption className={classes.blockTitle}>Image, {kind}</figcaption>
        <img className={classes.image} src={`data:${kind};base64,${block.data}`} alt="The tool’s result" />
      </figure>
    );
  }
  if (block.type === 'audio') return <Audio data={block.data} kind={block.mimeType} />;
  if (block.type === 'resource') {
    const { uri, mimeType, blob } = block.resource;
    return (
      <div>
        <p className={classes.blockTitle}>
          Resource <code>{uri}</code>
          {mimeType ? `, ${mimeType}` : ''}
        </p>
        <Download data={blob} kind={mimeType} />
      </div>
    );
  }
  return <CodeBlock code={JSON.stringify(block, null, 2)} label={`content ${number}`} wrap />;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

function Audio({ data, kind }: { data: string; kind: string }) {
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.blockTitle}>Audio, {kind}</figcaption>
      {/* biome-ignore lint/a11y/useMediaCaption: the tool's answer comes without captions */}
      <audio className={classes.audio} controls src={`data:${kind};base64,${data}`} />
      <Download data={data} kind={kind} />
    </figure>
  );
}

function Download({ data, kind }: { data: string; kind: string }) {
  function save() {
    const url = URL.createObjectURL(new Blob([bytesOf(data)], { type: kind }));
    const anchor = document.createElement('a');
    anchor.href = url;
    anchor.download = 'result';
    anchor.click();
    URL.revokeObjectURL(url);
  }
  return (
    <Button variant="default" size="compact-sm" onClick={save}>
      Download {Math.ceil((data.length * 3) / 4 / 1024).toLocaleString()} KiB
    </Button>
  );
}
