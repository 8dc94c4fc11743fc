import { Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { fill } from '../placeholders';
import type { ArgumentDraft } from './argument-rows';
import classes from './argument-rows.module.css';
import { Panel } from './page';
import type { MessageDraft } from './prompt-messages';

/** The messages that a client receives. The values typed here are no part of the prompt. */
export function PromptPreview({ drafts, messages }: { drafts: ArgumentDraft[]; messages: MessageDraft[] }) {
  const [values, setValues] = useState<Record<string, string>>({});
  return (
    <Panel title="Preview" note="What the client receives.">
      <Stack gap="md">
        {drafts.some((draft) => draft.name !== '') && (
          <Group gap="md" align="start">
            {drafts
              .filter((draft) => draft.name !== '')
              .map((draft) => (
                <TextInput
                  key={draft.id}
                  label={`Value of ${draft.name}`}
                  value={values[draft.name] ?? ''}
                  onChange={(event) => {
                    const { value } = event.currentTarget;
                    setValues((old) => ({ ...old, [draft.name]: value }));
                  }}
                />
              ))}
          </Group>
        )}
        <ol aria-label="Rendered messages" className={classes.preview}>
          {messages.map((message) => (
            <Said key={message.id} message={message} values={values} />
          ))}
        </ol>
      </Stack>
    </Panel>
  );
}

function Said({ message, values }: { message: MessageDraft; values: Record<string, string> }) {
  const { content } = message;
  return (
    <li className={classes.said}>
      <span className={classes.who}>{message.role === 'user' ? 'User' : 'Assistant'}</span>
      {content.type === 'text' && <p>{fill(content.text, values)}</p>}
      {content.type === 'image' &&
        (content.data === '' ? (
          <p>(an image)</p>
        ) : (
          <img src={`data:${content.mime_type};base64,${content.data}`} alt="Content of this message" />
        ))}
      {content.type === 'audio' && <p>(audio, {content.mime_type})</p>}
      {content.type === 'resource' && (
        <>
          <p>
            <code>{fill(content.uri, values)}</code>
          </p>
          <pre>{content.blob === undefined ? fill(content.text ?? '', values) : '(a file)'}</pre>
        </>
      )}
      {content.type === 'resource_link' && (
        <p>
          {content.name}: <code>{fill(content.uri, values)}</code>
        </p>
      )}
    </li>
  );
}
