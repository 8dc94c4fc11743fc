import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ComponentProps, ReactNode } from 'react';
import { serversQuery } from '../../../api/servers';

/** Describes what a key or an account may use. */
export function reach(resource: string | undefined): ReactNode {
  if (!resource) return 'Whole workspace';
  return <code>{resource.replace(window.location.origin, '')}</code>;
}

/** The value that stands for the whole workspace. */
export const whole = 'all';

/** Chooses what a new key or account may use. */
export function AccessSelect({ ws, ...field }: { ws: string } & ComponentProps<typeof Select>) {
  const servers = useQuery(serversQuery(ws));
  const options = servers.data?.items.map((one) => ({ value: one.id, label: one.name })) ?? [];
  return (
    <Select
      label="Access"
      data={[{ value: whole, label: 'Whole workspace' }, ...options]}
      allowDeselect={false}
      {...field}
    />
  );
}
