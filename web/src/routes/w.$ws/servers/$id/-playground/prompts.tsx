import { Button, Group, Stack } from '@mantine/core';
import { IconBookmark, IconPlayerPlay } from '@tabler/icons-react';
import { useState } from 'react';
import { CodeBlock } from '../../../../../components/copy';
import { InlineCode } from '../../../../../components/inline-code';
import { Panel } from '../../../../../components/page';
import { ResultBlocks } from '../../../../../components/result-blocks';
import { isObject } from '../../../../../json-schema';
import type { Connection } from '../../../../../mcp/connection';
import type { McpPrompt, Members } from '../../../../../mcp/messages';
import { CompletedInput } from './completed-input';
import { Outcome } from './outcome';
import { Pick } from './pick';
import classes from './playground.module.css';
import type { Call } from './tools';
import type { Playground } from './use-playground';
import { useRun } from './use-run';

export function Prompts({
  play,
  connection,
  onSave,
}: {
  play: Playground;
  connection: Connection;
  onSave?: (call: Call) => void;
}) {
  const { prompts } = play.offer;
  const [name, setName] = useState<string>();
  const prompt = prompts.find((one) => one.name === name) ?? prompts[0];
  return (
    <Pick
      noun="prompts"
      entries={prompts.map((one) => ({
        key: one.name,
        title: one.name,
        note: one.title ?? one.description?.split('\n')[0],
      }))}
      chosen={prompt?.name}
      onChoose={setName}
      empty="This server has no prompts."
    >
      {prompt && <PromptCall key={prompt.name} prompt={prompt} connection={connection} onSave={onSave} />}
    </Pick>
  );
}

function PromptCall({
  prompt,
  connection,
  onSave,
}: {
  prompt: McpPrompt;
  connection: Connection;
  onSave?: (call: Call) => void;
}) {
  const [values, setValues] = useState<Record<string, string>>({});
  const { run, start, cancel } = useRun();
  const params = { name: prompt.name, arguments: values };
  const missing = (prompt.arguments ?? []).some((one) => one.required && !values[one.name]);
  return (
    <Stack gap="lg">
      <Panel title={<code>{prompt.name}</code>}>
        {prompt.description && (
          <p className={classes.text}>
            <InlineCode text={prompt.description} />
          </p>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void start(({ signal }) => connection.request('prompts/get', params, { signal }));
          }}
        >
          <Stack gap="md" maw={640}>
            {(prompt.arguments ?? []).map((one) => (
              <CompletedInput
                key={one.name}
                connection={connection}
                reference={{ type: 'ref/prompt', name: prompt.name }}
                name={one.name}
                description={one.description}
                required={one.required === true}
                values={values}
                onChange={(value) =>
                  setValues(({ [one.name]: _, ...others }) =>
                    value === '' ? others : { ...others, [one.name]: value },
                  )
                }
              />
            ))}
            {(prompt.arguments ?? []).length === 0 && (
              <p className={classes.text}>This prompt takes no arguments.</p>
            )}
          </Stack>
          <Group mt="lg">
            <Button
              type="submit"
              loading={run.state === 'running'}
              disabled={missing}
              leftSection={<IconPlayerPlay size={16} aria-hidden />}
            >
              Get prompt
            </Button>
            {onSave && (
              <Button
                variant="default"
                disabled={missing}
                leftSection={<IconBookmark size={16} aria-hidden />}
                onClick={() => onSave({ method: 'prompts/get', params })}
              >
                Save call
              </Button>
            )}
          </Group>
        </form>
      </Panel>
      {run.result && Array.isArray(run.result.messages) && (
        <Messages messages={run.result.messages as Members[]} />
      )}
      <Outcome run={run} onCancel={cancel} />
    </Stack>
  );
}

function Messages({ messages }: { messages: Members[] }) {
  return (
    <Panel title="Messages">
      <Stack gap="md">
        {messages.map((message, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages have only their order
          <div key={place}>
            <p className={classes.role}>{String(message.role)}</p>
            {isObject(message.content) ? (
              <ResultBlocks blocks={[message.content]} />
            ) : (
              <CodeBlock
                code={JSON.stringify(message.content, null, 2)}
                label={`message ${place + 1}`}
                wrap
              />
            )}
          </div>
        ))}
      </Stack>
    </Panel>
  );
}
