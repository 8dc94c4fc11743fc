import { SegmentedControl, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import type { Sharing } from '../api/sign-in';

const words = {
  workspace: 'All calls use the account connected here.',
  person: 'On their first call, users get a link to connect their own account.',
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
        aria-label="Account used for calls"
        value={value}
        disabled={disabled}
        onChange={(chosen) => onChange(chosen as Sharing)}
        data={[
          { value: 'workspace', label: 'One shared account' },
          { value: 'person', label: 'Each user connects their own' },
        ]}
      />
      <Text size="sm" c="dimmed" mt={6}>
        {words[value]}
        {value === 'person' &&
          looks &&
          ' The account connected here is used only to list what the server offers.'}
      </Text>
    </div>
  );
}
