/** The two eras of MCP that the playground speaks. */
export type Era = '2025-11-25' | '2026-07-28';

export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

export type Members = Record<string, unknown>;

/** A JSON-RPC message of any kind. */
export interface RpcMessage {
  jsonrpc: '2.0';
  id?: string | number | null;
  method?: string;
  params?: Members;
  result?: Members;
  error?: RpcError;
}

export interface McpTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: Members;
  outputSchema?: Members;
  annotations?: Members;
  execution?: { taskSupport?: string };
}

export interface McpPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; title?: string; description?: string; required?: boolean }[];
}

export interface McpResource {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

export interface McpTemplate {
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

/** Names of a task differ by era; these are in both. */
export interface McpTask extends Members {
  taskId: string;
  status: string;
  statusMessage?: string;
  createdAt?: string;
}

export const levels = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;
export type Level = (typeof levels)[number];

/** A method that a server may ask of its client. */
export type AskMethod = 'elicitation/create' | 'sampling/createMessage' | 'roots/list';

/** An error answer of the server. */
export class McpError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor({ code, message, data }: RpcError) {
    super(message);
    this.name = 'McpError';
    this.code = code;
    this.data = data;
  }
}

/** An answer without a JSON-RPC response: an HTTP refusal, or a stream that broke. */
export class TransportFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'TransportFault';
    this.status = status;
  }
}

export const isMessage = (value: unknown): value is RpcMessage =>
  typeof value === 'object' && value !== null && (value as RpcMessage).jsonrpc === '2.0';
