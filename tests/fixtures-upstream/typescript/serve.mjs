// The HTTP side that the fixtures have in common: a free port, said on stdout, and a token if one is wanted.
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

/** True for the file that node was started with: what it imports serves nothing by itself. */
export const isProgram = (url) => process.argv[1] === fileURLToPath(url);

export async function body(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const whole = Buffer.concat(chunks).toString('utf8');
    return whole === '' ? undefined : JSON.parse(whole);
}

export function refuse(response, status, text) {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32600, message: text } }));
}

export function serve(handle) {
    const token = process.env.FIXTURE_TOKEN;
    const server = createServer(async (request, response) => {
        if (token && request.headers.authorization !== `Bearer ${token}`) {
            response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
            return;
        }
        try {
            await handle(request, response);
        } catch (error) {
            console.error(error);
            if (!response.headersSent) refuse(response, 500, 'The fixture broke.');
        }
    });
    server.requestTimeout = 0;
    server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
    // Whoever started it holds its stdin, and is gone when that ends.
    process.stdin.resume().on('end', () => process.exit(0));
}
