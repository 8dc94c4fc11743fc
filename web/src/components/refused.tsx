import { Alert, Button, Stack } from '@mantine/core';
import { confirmPath } from '../api/people';
import { InlineCode } from './inline-code';

/** A refusal, with the way on when the person only has to prove who they are. */
export function Refused({ error, title }: { error: unknown; title: string }) {
  if (!error) return null;
  const path = confirmPath(error);
  return (
    <Alert
      color={path ? 'sea' : 'red'}
      data-tone={path ? undefined : 'red'}
      role="alert"
      title={path ? 'Verify it’s you' : title}
    >
      <Stack gap="sm" align="flex-start">
        <span>
          <InlineCode text={error instanceof Error ? error.message : 'Try again.'} />
        </span>
        {path && (
          <Button component="a" href={path} size="compact-md">
            Verify
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
