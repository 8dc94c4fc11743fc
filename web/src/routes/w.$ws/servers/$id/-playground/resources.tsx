import { Button, Group, Stack } from '@mantine/core';
import { IconBell, IconBellOff, IconBookmark, IconFileText } from '@tabler/icons-react';
import { useState } from 'react';
import { Tag } from '../../../../../components/badges';
import { InlineCode } from '../../../../../components/inline-code';
import { Panel } from '../../../../../components/page';
import { toastFailed } from '../../../../../components/toast';
import type { Connection } from '../../../../../mcp/connection';
import { expand, variablesOf } from '../../../../../mcp/uri-template';
import { CompletedInput } from './completed-input';
import { Outcome } from './outcome';
import { Pick } from './pick';
import classes from './playground.module.css';
import type { Call } from './tools';
import type { Playground } from './use-playground';
import { useRun } from './use-run';

export function Resources({
  play,
  connection,
  onSave,
}: {
  play: Playground;
  connection: Connection;
  onSave?: (call: Call) => void;
}) {
  const { resources, templates } = play.offer;
  const all = [
    ...resources.map((one) => ({ ...one, key: one.uri, address: one.uri, template: false })),
    ...templates.map((one) => ({
      ...one,
      key: `template ${one.uriTemplate}`,
      address: one.uriTemplate,
      template: true,
    })),
  ];
  const [key, setKey] = useState<string>();
  const chosen = all.find((one) => one.key === key) ?? all[0];
  return (
    <Pick
      noun="resources"
      entries={all.map((one) => ({
        key: one.key,
        title: one.address,
        note: one.title ?? one.name,
        mark: one.template ? (
          <Tag>template</Tag>
        ) : play.subscribed.includes(one.address) ? (
          <Tag>subscribed</Tag>
        ) : undefined,
      }))}
      chosen={chosen?.key}
      onChoose={setKey}
      empty="This server has no resources."
    >
      {chosen && (
        <ResourceRead
          key={chosen.key}
          title={chosen.title ?? chosen.name}
          description={chosen.description}
          address={chosen.address}
          template={chosen.template}
          play={play}
          connection={connection}
          onSave={onSave}
        />
      )}
    </Pick>
  );
}

function ResourceRead({
  title,
  description,
  address,
  template,
  play,
  connection,
  onSave,
}: {
  title: string;
  description: string | undefined;
  address: string;
  template: boolean;
  play: Playground;
  connection: Connection;
  onSave?: (call: Call) => void;
}) {
  const names = template ? variablesOf(address) : [];
  const [values, setValues] = useState<Record<string, string>>({});
  const { run, start, cancel } = useRun();
  const uri = template ? expand(address, values) : address;
  const incomplete = names.some((name) => !values[name]);
  const subscribed = play.subscribed.includes(uri);
  const updates = play.notices.filter(
    (one) => one.method === 'notifications/resources/updated' && one.params.uri === uri,
  );
  const change = (uris: string[]) => play.subscribe(uris).catch(toastFailed);
  return (
    <Stack gap="lg">
      <Panel title={title}>
        {description && (
          <p className={classes.text}>
            <InlineCode text={description} />
          </p>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void start(({ signal }) => connection.request('resources/read', { uri }, { signal }));
          }}
        >
          <Stack gap="md" maw={640}>
            {names.map((name) => (
              <CompletedInput
                key={name}
                connection={connection}
                reference={{ type: 'ref/resource', uri: address }}
                name={name}
                required
                values={values}
                onChange={(value) => setValues((before) => ({ ...before, [name]: value }))}
              />
            ))}
          </Stack>
          <p className={classes.address}>
            <code>{uri}</code>
          </p>
          <Group gap="md">
            <Button
              type="submit"
              loading={run.state === 'running'}
              disabled={incomplete}
              leftSection={<IconFileText size={16} aria-hidden />}
            >
              Read
            </Button>
            <Button
              variant="default"
              disabled={incomplete}
              leftSection={
                subscribed ? <IconBellOff size={16} aria-hidden /> : <IconBell size={16} aria-hidden />
              }
              onClick={() =>
                change(subscribed ? play.subscribed.filter((one) => one !== uri) : [...play.subscribed, uri])
              }
            >
              {subscribed ? 'Unsubscribe' : 'Subscribe'}
            </Button>
            {onSave && (
              <Button
                variant="default"
                disabled={incomplete}
                leftSection={<IconBookmark size={16} aria-hidden />}
                onClick={() => onSave({ method: 'resources/read', params: { uri } })}
              >
                Save call
              </Button>
            )}
            {subscribed && (
              <span role="status">
                {updates.length === 0
                  ? 'No update yet.'
                  : updates.length === 1
                    ? '1 update'
                    : `${updates.length} updates`}
              </span>
            )}
          </Group>
        </form>
      </Panel>
      <Outcome run={run} onCancel={cancel} />
    </Stack>
  );
}
