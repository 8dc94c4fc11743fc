import { Button, Checkbox, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { type EventType, eventTypesQuery } from '../../../api/webhooks';
import { Loaded } from '../../../components/page';

/** Types by the noun that their names begin with. */
function byNoun(types: EventType[]): [string, EventType[]][] {
  const groups = new Map<string, EventType[]>();
  for (const type of types) {
    const noun = type.name.split('.')[0] ?? '';
    groups.set(noun, [...(groups.get(noun) ?? []), type]);
  }
  return [...groups];
}

/** The choice of events, grouped by noun. */
export function EventChoice({
  ws,
  value,
  onChange,
  error,
}: {
  ws: string;
  value: string[];
  onChange: (value: string[]) => void;
  error?: ReactNode;
}) {
  const types = useQuery(eventTypesQuery(ws));
  return (
    <Loaded query={types}>
      {({ items }) => (
        <Checkbox.Group label="Events" value={value} onChange={onChange} error={error} withAsterisk>
          <Group gap="xs" mt={4}>
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => onChange(items.map((type) => type.name))}
            >
              Choose all
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => onChange([])}>
              Choose none
            </Button>
          </Group>
          <Stack gap="sm" mt="sm">
            {byNoun(items).map(([noun, own]) => (
              <div key={noun}>
                <Text size="sm" fw={600} tt="capitalize">
                  {noun}
                </Text>
                <Stack gap={6} mt={4}>
                  {own.map((type) => (
                    <Checkbox
                      key={type.name}
                      value={type.name}
                      label={type.name}
                      description={type.summary}
                    />
                  ))}
                </Stack>
              </div>
            ))}
          </Stack>
        </Checkbox.Group>
      )}
    </Loaded>
  );
}
