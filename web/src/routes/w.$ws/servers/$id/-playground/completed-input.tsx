import { Autocomplete } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';
import type { Connection } from '../../../../../mcp/connection';
import type { Members } from '../../../../../mcp/messages';

/** A text field whose suggestions come from `completion/complete`. A server without it just has no suggestions. */
export function CompletedInput({
  connection,
  reference,
  name,
  description,
  required,
  values,
  onChange,
}: {
  connection: Connection;
  reference: Members;
  name: string;
  description?: string;
  required: boolean;
  values: Record<string, string>;
  onChange: (value: string) => void;
}) {
  const [offered, setOffered] = useState<string[]>([]);
  const complete = useDebouncedCallback(async (value: string) => {
    if (!('completions' in connection.server.capabilities)) return;
    const { [name]: _, ...others } = values;
    try {
      const result = await connection.request('completion/complete', {
        ref: reference,
        argument: { name, value },
        ...(Object.keys(others).length > 0 && { context: { arguments: others } }),
      });
      const found = (result.completion as { values?: string[] } | undefined)?.values ?? [];
      setOffered([...new Set(found)]);
    } catch {
      setOffered([]);
    }
  }, 200);
  return (
    <Autocomplete
      label={<code>{name}</code>}
      description={description}
      withAsterisk={required}
      value={values[name] ?? ''}
      data={offered}
      // The server has filtered already.
      filter={({ options }) => options}
      onFocus={() => complete(values[name] ?? '')}
      onChange={(value) => {
        onChange(value);
        complete(value);
      }}
      spellCheck={false}
    />
  );
}
