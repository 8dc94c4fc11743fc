import { SegmentedControl, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import type { Sharing } from '../api/sign-in';

const words = {
  workspace: 'Whoever may call the tools acts as the account that is connected here.',
  person: 'Who calls a tool for the first time is shown a link to connect their own account.',
};

/** Whose accounts calls use, in words. `looks`: an MCP server, at which the workspace's account looks anyway. */
export function SharingChoice({
  value,
  onChange,
  disabled,
  looks,
}: {
  value: Sharing;
  onChange: (value: Sharing) => void;
  disabled?: boolean;
  looks: boolean;
}) {
  const isNarrow = useMediaQuery('(max-width: 30em)');
  return (
    <div>
      <SegmentedControl
        orientation={isNarrow ? 'vertical' : 'horizontal'}
        aria-label="Whose account calls use"
        value={value}
        disabled={disabled}
        onChange={(chosen) => onChange(chosen as Sharing)}
        data={[
          { value: 'workspace', label: 'One account for all' },
          { value: 'person', label: 'Each person connects their own' },
        ]}
      />
      <Text size="sm" c="dimmed" mt={6}>
        {words[value]}
        {value === 'person' &&
          looks &&
          ' The account that is connected here only looks at what the server offers.'}
      </Text>
    </div>
  );
}
