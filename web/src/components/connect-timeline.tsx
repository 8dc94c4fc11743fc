import type { ConnectAttempt, ConnectEvent } from '../api/clients';
import { isObject } from '../json-schema';
import { formatDateTime } from '../time';
import { Status } from './badges';
import classes from './connect-timeline.module.css';

/** Labels of the steps, as an outside observer would name them. */
export const words: Record<ConnectEvent['step'], string> = {
  challenge: 'Sign-in required (401)',
  resource_metadata: 'Read the server’s metadata',
  server_metadata: 'Read the sign-in metadata',
  register: 'Registered itself',
  client_document: 'Client metadata fetched',
  authorize: 'Requested access',
  sign_in: 'Redirected to sign-in',
  consent: 'Consent page',
  token: 'Exchanged the code',
  refresh: 'Refreshed its token',
  request: 'Sent a request',
};

const outcomes: Record<ConnectEvent['outcome'], ['good' | 'bad' | 'quiet', string]> = {
  ok: ['good', 'OK'],
  waiting: ['quiet', 'Waiting'],
  refused: ['bad', 'Refused'],
  failed: ['bad', 'Failed'],
};

function sent(detail: unknown): [string, string][] {
  if (!isObject(detail)) return [];
  return Object.entries(detail).map(([name, value]) => [
    name,
    Array.isArray(value)
      ? value.join(' ')
      : typeof value === 'boolean'
        ? value
          ? 'sent'
          : 'not sent'
        : String(value),
  ]);
}

/** What happened, step by step; then what is known of such clients. */
export function Timeline({ attempt }: { attempt: ConnectAttempt }) {
  return (
    <div className={classes.timeline}>
      <ol className={classes.steps}>
        {attempt.steps.map((step, at) => {
          const [tone, word] = outcomes[step.outcome];
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps are only ever added at the end
            <li key={`${step.at} ${at}`} className={classes.step} data-tone={tone}>
              <div className={classes.head}>
                <span className={classes.name}>{words[step.step]}</span>
                <Status tone={tone}>{word}</Status>
                <time dateTime={step.at} className={classes.at}>
                  {formatDateTime(step.at)}
                </time>
              </div>
              {step.repeats && (
                <p className={classes.rule}>
                  {step.repeats === 1 ? 'Repeated once' : `Repeated ${step.repeats} times`}
                  {step.last_at && (
                    <>
                      , last <time dateTime={step.last_at}>{formatDateTime(step.last_at)}</time>
                    </>
                  )}
                </p>
              )}
              {step.fault && <p className={classes.fault}>{step.fault}</p>}
              {step.rule_says && <p className={classes.rule}>{step.rule_says}</p>}
              <dl className={classes.facts}>
                {[
                  ...sent(step.sent),
                  ...(step.agent ? [['user agent', step.agent] as [string, string]] : []),
                  ...(step.network ? [['network', step.network] as [string, string]] : []),
                  ...(step.request_id ? [['request ID', step.request_id] as [string, string]] : []),
                ].map(([name, value]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>
                      <code>{value}</code>
                    </dd>
                  </div>
                ))}
              </dl>
            </li>
          );
        })}
      </ol>
      {attempt.known.map((known) => (
        <p key={known.source} className={classes.known}>
          <strong>About {known.client}:</strong> {known.text} <span>({known.source})</span>
        </p>
      ))}
    </div>
  );
}
