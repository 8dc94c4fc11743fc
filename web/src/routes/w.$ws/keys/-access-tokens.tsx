import { useQuery } from '@tanstack/react-query';
import {
  useCreateWorkspaceToken,
  useRevokeWorkspaceToken,
  workspaceTokensQuery,
} from '../../../api/access-tokens';
import { AccessTokens, NewTokenDialog } from '../../../components/access-tokens';
import { CopyLine } from '../../../components/copy';
import { HelpLink } from '../../../components/help-link';
import type { Issuing } from '../../../components/issued';
import { Panel } from '../../../components/page';

/** The tokens of the workspace for the management API. */
export function WorkspaceTokens({ ws }: { ws: string }) {
  const tokens = useQuery(workspaceTokensQuery(ws));
  const revoke = useRevokeWorkspaceToken(ws);
  return (
    <>
      <AccessTokens
        tokens={tokens}
        revoke={revoke}
        empty="Programs send a token to Portolan’s own API to change this workspace: pipelines, scripts, the portolan command. It opens no published server."
      />
      <Panel
        title="For agents"
        note={
          <>
            With an access token, an agent reads the calls, insights and configuration of this workspace at
            this MCP server. <HelpLink to="api#let-an-agent-look-at-the-workspace">Learn more</HelpLink>
          </>
        }
      >
        <CopyLine
          text={`${window.location.origin}/api/v1/workspaces/${ws}/mcp`}
          label="the address of the MCP server"
        />
      </Panel>
    </>
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
