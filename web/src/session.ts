import { createContext, useContext } from 'react';
import { rolesOf } from './api/client.gen';
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

/** Actions that the page offers by role; the API decides. */
export type Action = keyof typeof rolesOf;

export function may(role: Role, action: Action): boolean {
  return (rolesOf[action] as readonly Role[]).includes(role);
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
