import { createContext, useContext } from 'react';
import type { Me, Role, WorkspaceSummary } from './api/me';

/** The signed-in person, and the workspace of the page. */
export interface Session {
  me: Me;
  workspace: WorkspaceSummary;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('useSession outside of a workspace page');
  return session;
}

/** Actions that the page offers by role; the API decides. Same table as `crates/model/src/member.rs`. */
export type Action = 'call_tools' | 'edit_registry' | 'administer';

const allowed: Record<Action, readonly Role[]> = {
  call_tools: ['member', 'developer', 'admin', 'owner'],
  edit_registry: ['developer', 'admin', 'owner'],
  administer: ['admin', 'owner'],
};

export function may(role: Role, action: Action): boolean {
  return allowed[action].includes(role);
}

export function useMay(action: Action): boolean {
  return may(useSession().workspace.role, action);
}

const lastWorkspace = 'portolan-last-workspace';

/** The workspace of the last visit, so that the console opens where the person left it. */
export function rememberWorkspace(slug: string) {
  try {
    window.localStorage.setItem(lastWorkspace, slug);
  } catch {
    // Storage may be switched off; then the first workspace opens.
  }
}

export function rememberedWorkspace(): string | null {
  try {
    return window.localStorage.getItem(lastWorkspace);
  } catch {
    return null;
  }
}
