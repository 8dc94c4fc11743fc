/** The console as an OAuth client: a public one with PKCE (rules PLAY-1 to PLAY-4). */
export const clientId = 'cli_portolan_playground';
export const callbackPath = '/playground/callback';

/** Name of the channel over which the callback's window hands over the answer of one flow. */
export const channelOf = (state: string) => `portolan-playground-${state}`;

export interface Authorized {
  accessToken: string;
  /** The time at which the token ends, in milliseconds. */
  endsAt: number;
}

/** A flow that ended without a token: the words of the authorization server, or ours. */
export class AuthorizationFault extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'AuthorizationFault';
    this.code = code;
  }
}

const base64url = (bytes: Uint8Array) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** The verifier of a flow and its S256 challenge (RFC 7636). */
export async function pkce(): Promise<{ verifier: string; challenge: string }> {
  const verifier = random();
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return { verifier, challenge: base64url(new Uint8Array(digest)) };
}

interface Metadata {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
}

/** The parameters of a callback, as the callback's page hands them over. */
export type Callback = Record<string, string>;

const words: Record<string, string> = {
  access_denied: 'Access was not allowed.',
  invalid_target: 'This server cannot be connected to. Publish it first.',
};

/** The token endpoint's error as a text. */
const refusal = (code: string, description: string | undefined) =>
  new AuthorizationFault(code, words[code] ?? description ?? `The authorization server refused: ${code}.`);

/**
 * Runs the authorization code flow in a window of its own. Call it in the handler of a click: browsers block other
 * windows. `another` asks for a sign-in, so that another person can use it.
 */
export async function authorize(
  resource: string,
  { another, signal }: { another: boolean; signal: AbortSignal },
): Promise<Authorized> {
  const width = Math.min(520, window.screen.availWidth);
  const height = Math.min(760, window.screen.availHeight);
  // The window opens before anything is awaited, while the click still counts.
  const opened = window.open('about:blank', '_blank', `popup,width=${width},height=${height}`);
  if (!opened) {
    throw new AuthorizationFault(
      'blocked',
      'The browser blocked the window. Allow pop-ups for this site, then connect again.',
    );
  }
  try {
    const metadata = await discovered(signal);
    const { verifier, challenge } = await pkce();
    const state = random();
    const redirectUri = `${metadata.issuer}${callbackPath}`;
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      scope: 'mcp',
      resource,
      state,
      ...(another && { prompt: 'login' }),
    });
    const answer = answered(state, signal);
    opened.location.href = `${metadata.authorization_endpoint}?${query}`;
    const callback = await answer;
    if (callback.iss !== metadata.issuer) {
      throw new AuthorizationFault('issuer', 'The answer came from another authorization server.');
    }
    if (callback.error) throw refusal(callback.error, callback.error_description);
    return await redeemed(metadata, {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: callback.code ?? '',
      code_verifier: verifier,
      redirect_uri: redirectUri,
      resource,
    });
  } finally {
    opened.close();
  }
}

async function discovered(signal: AbortSignal): Promise<Metadata> {
  const response = await fetch('/.well-known/oauth-authorization-server', { signal });
  if (!response.ok) throw new AuthorizationFault('metadata', 'The authorization server does not answer.');
  return (await response.json()) as Metadata;
}

/** Waits for the callback's window of this flow. */
function answered(state: string, signal: AbortSignal): Promise<Callback> {
  const channel = new BroadcastChannel(channelOf(state));
  return new Promise<Callback>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new DOMException('Cancelled', 'AbortError')));
    channel.onmessage = ({ data }: MessageEvent<Callback>) => {
      channel.postMessage('taken');
      resolve(data);
    };
  }).finally(() => channel.close());
}

async function redeemed(metadata: Metadata, form: Record<string, string>): Promise<Authorized> {
  const response = await fetch(metadata.token_endpoint, {
    method: 'POST',
    body: new URLSearchParams(form),
    credentials: 'omit',
    cache: 'no-store',
  });
  const body = (await response.json()) as {
    access_token?: string;
    expires_in?: number;
    error?: string;
    error_description?: string;
  };
  if (!response.ok || !body.access_token) throw refusal(body.error ?? 'unreadable', body.error_description);
  return { accessToken: body.access_token, endsAt: Date.now() + (body.expires_in ?? 300) * 1000 };
}

/** Hands the answer over, in the callback's window. False if no playground takes it. */
export function handOver(callback: Callback, patience = 3000): Promise<boolean> {
  const channel = new BroadcastChannel(channelOf(callback.state ?? ''));
  return new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), patience);
    channel.onmessage = ({ data }) => {
      if (data !== 'taken') return;
      clearTimeout(timer);
      resolve(true);
    };
    channel.postMessage(callback);
  }).finally(() => channel.close());
}
