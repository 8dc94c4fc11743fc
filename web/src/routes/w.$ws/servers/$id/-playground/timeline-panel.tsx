import { Button, Group, Switch } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconChevronRight, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { Status } from '../../../../../components/badges';
import { CodeBlock, CopyButton } from '../../../../../components/copy';
import { HeaderList } from '../../../../../components/header-list';
import { Panel } from '../../../../../components/page';
import { asCurl, asJson, type Exchange, type Frame } from '../../../../../mcp/timeline';
import { formatDuration } from '../../../../../time';
import classes from './playground.module.css';
import type { Playground } from './use-playground';

const bytes = (count: number) =>
  count < 1024
    ? `${count} B`
    : count < 1024 * 1024
      ? `${(count / 1024).toFixed(1)} KiB`
      : `${(count / 1024 / 1024).toFixed(1)} MiB`;

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Every request and all that came back, newest first. */
export function TimelinePanel({ play }: { play: Playground }) {
  const [streams, setStreams] = useState(true);
  const shown = play.exchanges.filter((one) => streams || one.method === 'POST').toReversed();
  return (
    <Panel
      title="Timeline"
      aside={
        <Group gap="md">
          <Switch
            size="xs"
            label="Streams"
            checked={streams}
            onChange={(event) => setStreams(event.currentTarget.checked)}
          />
          <Button
            variant="default"
            size="xs"
            leftSection={<IconTrash size={14} aria-hidden />}
            disabled={play.exchanges.length === 0}
            onClick={() => play.timeline.clear()}
          >
            Clear
          </Button>
        </Group>
      }
      note="Requests and answers as they went over the wire. The token is masked."
    >
      {shown.length === 0 ? (
        <p className={classes.text}>No requests yet.</p>
      ) : (
        <ul className={classes.exchanges} aria-label="Requests">
          {shown.map((exchange) => (
            <ExchangeRow key={exchange.key} exchange={exchange} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function ExchangeRow({ exchange }: { exchange: Exchange }) {
  const [opened, setOpened] = useState(false);
  const { label, method, startedAt, bytesOut, bytesIn, endedMs, frames } = exchange;
  const error = frames.some((one) => one.message?.error);
  return (
    <li>
      <details className={classes.exchange} onToggle={(event) => setOpened(event.currentTarget.open)}>
        <summary className={classes.exchangeHead}>
          <IconChevronRight size={15} aria-hidden className={classes.chevron} />
          <code className={classes.exchangeLabel}>{label}</code>
          <span className={classes.exchangeState}>
            <ExchangeStatus exchange={exchange} error={error} />
          </span>
          <span className={classes.exchangeFigures}>
            <span>{clock.format(startedAt)}</span>
            <span>{method}</span>
            <span title="Sent">
              <IconArrowUp size={12} aria-hidden /> {bytes(bytesOut)}
            </span>
            <span title="Received">
              <IconArrowDown size={12} aria-hidden /> {bytes(bytesIn)}
            </span>
            <span>{endedMs === undefined ? 'open' : formatDuration(endedMs)}</span>
          </span>
        </summary>
        {opened && <ExchangeBody exchange={exchange} />}
      </details>
    </li>
  );
}

function ExchangeStatus({
  exchange: { status, endedMs, fault },
  error,
}: {
  exchange: Exchange;
  error: boolean;
}) {
  if (fault) return <Status tone="warn">{fault}</Status>;
  if (status === undefined) return <Status tone="quiet">Waiting</Status>;
  const tone = status >= 400 || error ? 'bad' : endedMs === undefined ? 'quiet' : 'good';
  return (
    <Status tone={tone}>
      {status}
      {error && status < 400 ? ' · error' : ''}
    </Status>
  );
}

function ExchangeBody({ exchange }: { exchange: Exchange }) {
  const { sent, received, body, frames, dropped, headersMs } = exchange;
  return (
    <div className={classes.exchangeBody}>
      <Group gap="xs">
        <CopyButton text={asCurl(exchange)} label="Copy as curl" />
        <span className={classes.small}>curl</span>
        <CopyButton text={asJson(exchange)} label="Copy as JSON" />
        <span className={classes.small}>JSON</span>
      </Group>
      <Heading>Request</Heading>
      <HeaderList label="Request headers" headers={sent} />
      {body && <CodeBlock code={pretty(body)} label="request body" wrap />}
      {received.length > 0 && (
        <>
          <Heading>
            Response{headersMs !== undefined && `, headers after ${formatDuration(headersMs)}`}
          </Heading>
          <HeaderList label="Response headers" headers={received} />
        </>
      )}
      {frames.map((frame, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: frames have only their order
        <FrameView key={place} frame={frame} number={place + 1} />
      ))}
      {dropped > 0 && <p className={classes.small}>{dropped} further messages are not kept.</p>}
    </div>
  );
}

function FrameView({ frame, number }: { frame: Frame; number: number }) {
  const { event, eventId, afterMs, message, text } = frame;
  const what = message?.method ?? (message?.error ? 'error' : message ? 'result' : event ? 'event' : 'body');
  return (
    <div>
      <Heading>
        {event ? `Event ${number}` : 'Body'} · {what} · after {formatDuration(afterMs)} · {bytes(frame.bytes)}
      </Heading>
      {eventId !== undefined && (
        <p className={classes.small}>
          id <code>{eventId}</code>
        </p>
      )}
      {text === '' ? (
        <p className={classes.small}>No data.</p>
      ) : (
        <CodeBlock code={pretty(text)} label={`message ${number}`} wrap />
      )}
    </div>
  );
}

const Heading = ({ children }: { children: React.ReactNode }) => (
  <p className={classes.heading}>{children}</p>
);
