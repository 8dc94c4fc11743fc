import { Anchor, Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { CodeBlock } from '../../../../../components/copy';
import { Dialog } from '../../../../../components/dialog';
import { ResultBlocks } from '../../../../../components/result-blocks';
import { SchemaForm } from '../../../../../components/schema-form';
import { isObject, resolve, type Schema, startingValue } from '../../../../../json-schema';
import type { Members } from '../../../../../mcp/messages';
import classes from './playground.module.css';
import type { Question } from './use-playground';

/** The first question that waits. A question stays until it is answered: Escape does not lose it. */
export function Questions({ questions }: { questions: Question[] }) {
  const question = questions[0];
  if (!question) return null;
  const sampling = question.method === 'sampling/createMessage';
  return (
    <Dialog
      title={sampling ? 'The server asks for a model’s answer' : 'The server asks you'}
      opened
      kept
      onClose={() => undefined}
    >
      {sampling ? (
        <Sampling key={question.key} question={question} />
      ) : (
        <Elicitation key={question.key} question={question} />
      )}
    </Dialog>
  );
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');

function Elicitation({ question }: { question: Question }) {
  const { params, answer } = question;
  const url = text(params.url);
  const byUrl = params.mode === 'url' && url !== '';
  const schema = (isObject(params.requestedSchema) ? params.requestedSchema : {}) as Schema;
  const [content, setContent] = useState<Members>(() => startingValue(resolve(schema, schema), schema));
  const missing = !byUrl && (schema.required ?? []).some((name) => content[name] === undefined);
  const opens = /^https?:/.test(url);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        answer(byUrl ? { action: 'accept' } : { action: 'accept', content });
      }}
    >
      <Stack gap="md">
        <p className={classes.text}>{text(params.message)}</p>
        {byUrl ? (
          <p className={classes.address}>
            {opens ? (
              <Anchor href={url} target="_blank" rel="noreferrer noopener">
                {url}
              </Anchor>
            ) : (
              <code>{url}</code>
            )}
          </p>
        ) : (
          <SchemaForm schema={schema} value={content} onChange={setContent} faults={[]} />
        )}
        <Group justify="flex-end">
          <Button variant="subtle" color="gray" onClick={() => answer({ action: 'cancel' })}>
            Cancel
          </Button>
          <Button variant="default" onClick={() => answer({ action: 'decline' })}>
            Decline
          </Button>
          <Button type="submit" disabled={missing}>
            Accept
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Sampling({ question }: { question: Question }) {
  const { params, answer, refuse } = question;
  const [reply, setReply] = useState('');
  const [model, setModel] = useState('a-person');
  const messages = Array.isArray(params.messages) ? (params.messages as Members[]) : [];
  const { messages: _, systemPrompt, ...rest } = params;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        answer({
          role: 'assistant',
          content: { type: 'text', text: reply },
          model,
          stopReason: 'endTurn',
        });
      }}
    >
      <Stack gap="md">
        {text(systemPrompt) && <CodeBlock code={text(systemPrompt)} label="system prompt" wrap />}
        {messages.map((message, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages have only their order
          <div key={place}>
            <p className={classes.role}>{text(message.role)}</p>
            <ResultBlocks
              blocks={(Array.isArray(message.content) ? message.content : [message.content]) as Members[]}
            />
          </div>
        ))}
        <details className={classes.details}>
          <summary>Other parameters</summary>
          <CodeBlock code={JSON.stringify(rest, null, 2)} label="other parameters" wrap />
        </details>
        <Textarea
          label="Answer"
          description="Written by you in place of a model."
          rows={4}
          value={reply}
          onChange={(event) => setReply(event.currentTarget.value)}
        />
        <TextInput label="Model" value={model} onChange={(event) => setModel(event.currentTarget.value)} />
        <Group justify="flex-end">
          <Button variant="default" onClick={() => refuse('User rejected sampling request')}>
            Refuse
          </Button>
          <Button type="submit" disabled={reply === ''}>
            Send answer
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
