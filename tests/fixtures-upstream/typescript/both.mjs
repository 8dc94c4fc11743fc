// Both eras on one URL: sessions with the TypeScript SDK 1.x, requests that stand alone with 2.x,
// the same content. The lists differ in the tools for tasks: each era has its own. With `gated`
// sessions gate tools as `legacy.mjs` does. As in the official server of both eras, a tool that
// asks its client in a session does so by requests of its own, and asks a client of 2026-07-28
// nothing.
import { streamable } from './legacy.mjs';
import { standAlone } from './modern.mjs';
import { serve } from './serve.mjs';

const pushed = new Set(['test_sampling', 'test_elicitation', 'test_elicitation_sep1034_defaults', 'test_elicitation_sep1330_enums']);
const modern = standAlone(pushed);

serve((request, response) =>
    request.headers['mcp-protocol-version'] === '2026-07-28' ? modern(request, response) : streamable(request, response),
);
