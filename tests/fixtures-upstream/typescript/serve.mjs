// The HTTP side that the fixtures have in common: a free port, printed on stdout, a token on
// request, and an echo of it.
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

const TEXTS = /("(?:text|message|statusMessage|description|city)":"|(?:"logger":"fixture"|"level":"info"),"data":")/g;
const BLOBS = /("blob":")/g;

/** Each text and each blob of the answer begins with the `Authorization` of its request. */
function echo(request, response) {
    const said = `${request.headers.authorization} `;
    // Whole groups of three bytes: what follows stays Base64.
    const blob = Buffer.from(said.padEnd(Math.ceil(said.length / 3) * 3)).toString('base64');
    const echoed = (chunk) =>
        chunk === undefined || chunk === null || typeof chunk === 'function'
            ? chunk
            : Buffer.from(chunk).toString('utf8').replaceAll(TEXTS, `$1${said}`).replaceAll(BLOBS, `$1${blob}`);
    const { write, end, writeHead } = response;
    response.write = (chunk, ...more) => write.call(response, echoed(chunk), ...more);
    response.end = (chunk, ...more) => end.call(response, echoed(chunk), ...more);
    response.writeHead = (...given) => {
        const headers = given.at(-1);
        for (const name of Object.keys(typeof headers === 'object' ? headers : {})) {
            if (name.toLowerCase() === 'content-length') delete headers[name];
        }
        response.removeHeader('content-length');
        return writeHead.apply(response, given);
    };
}

export function serve(handle) {
    const token = process.env.FIXTURE_TOKEN;
    const server = createServer(async (request, response) => {
        if (token && request.headers.authorization !== `Bearer ${token}`) {
            response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
            return;
        }
        if (process.env.FIXTURE_ECHO) echo(request, response);
        try {
            await handle(request, response);
        } catch (error) {
            console.error(error);
            if (!response.headersSent) refuse(response, 500, 'The fixture broke.');
        }
    });
    server.requestTimeout = 0;
    server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
    // The parent process holds its stdin, and is gone when that ends.
    process.stdin.resume().on('end', () => process.exit(0));
}
