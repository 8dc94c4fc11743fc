import { useQuery } from '@tanstack/react-query';
import {
  useCreateWorkspaceToken,
  useRevokeWorkspaceToken,
  workspaceTokensQuery,
} from '../../../api/access-tokens';
import { AccessTokens, NewTokenDialog } from '../../../components/access-tokens';
import type { Issuing } from '../../../components/issued';

/** The tokens of the workspace for the management API. */
export function WorkspaceTokens({ ws }: { ws: string }) {
  const tokens = useQuery(workspaceTokensQuery(ws));
  const revoke = useRevokeWorkspaceToken(ws);
  return (
    <AccessTokens
      tokens={tokens}
      revoke={revoke}
      empty="Programs send a token to Portolan’s own API to change this workspace: pipelines, scripts, the portolan command. It opens no server."
    />
  );
}

export function NewWorkspaceTokenDialog({ ws, ...issuing }: Issuing & { ws: string }) {
  const create = useCreateWorkspaceToken(ws);
  return (
    <NewTokenDialog
      {...issuing}
      create={create}
      roles={['viewer', 'member', 'developer', 'admin']}
      send={({ name, role, scopes, days }, made) =>
        create.mutate({ name, role, scopes, days }, { onSuccess: made })
      }
    />
  );
}
