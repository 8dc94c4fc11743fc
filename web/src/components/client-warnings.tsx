import { Alert } from '@mantine/core';
import type { ServerWarning } from '../api/servers';
import { InlineCode } from './inline-code';

/** Problems that some AI clients would have with a server. */
export function ClientWarnings({ warnings }: { warnings: ServerWarning[] }) {
  if (warnings.length === 0) return null;
  return (
    <Alert color="yellow" data-tone="yellow" title="Client compatibility">
      <ul className="short">
        {warnings.map((warning) => (
          <li key={`${warning.client}${warning.message}`}>
            <strong>{warning.client}</strong>: <InlineCode text={warning.message} />
          </li>
        ))}
      </ul>
    </Alert>
  );
}
