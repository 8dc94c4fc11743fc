/** What `portolan login` asks of the console's page (CONF-15). */
export interface CommandRequest {
  /** The port on which the command waits at 127.0.0.1. */
  port: number;
  /** Goes back to the command. */
  state: string;
  /** The challenge of the command's secret (RFC 7636, S256). */
  challenge: string;
  /** The name of the machine, as it calls itself. */
  name: string;
  /** The workspace that the command proposes. */
  workspace?: string;
}

const secret = /^[A-Za-z0-9_-]{43}$/;

/** Reads the query of the page. `undefined` if a part is missing, or has another form. */
export function readCommandRequest(search: string): CommandRequest | undefined {
  const query = new URLSearchParams(search);
  const port = Number(query.get('port'));
  const state = query.get('state') ?? '';
  const challenge = query.get('challenge') ?? '';
  const name = (query.get('name') ?? '').trim().slice(0, 60);
  const isPort = Number.isInteger(port) && port > 0 && port < 65_536;
  if (!isPort || !secret.test(state) || !secret.test(challenge) || name === '') return undefined;
  const workspace = query.get('workspace');
  return { port, state, challenge, name, ...(workspace && { workspace }) };
}

/** Where the command waits for the answer: always this machine. */
export function returnAddress({ port, state }: CommandRequest, answer: Record<string, string>): string {
  return `http://127.0.0.1:${port}/callback?${new URLSearchParams({ ...answer, state })}`;
}
