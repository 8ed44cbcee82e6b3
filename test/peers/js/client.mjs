// Drives a bridge with the official TypeScript SDK and prints what it saw, one JSON
// object. Arguments: transport (http or stdio), URL or command, JSON of the calls.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target, calls] = process.argv.slice(2);
const transport = kind === "http"
  ? new StreamableHTTPClientTransport(new URL(target), {
      requestInit: { headers: { Authorization: `Bearer ${process.env.PEER_TOKEN}` } },
    })
  : new StdioClientTransport({ command: target, env: { ...process.env } });
const client = new Client({ name: "peer", version: "1" });
await client.connect(transport);
await client.ping();
const list = await client.listTools();
const seen = [];
for (const call of JSON.parse(calls)) {
  const result = await client.callTool(call);
  seen.push({
    Text: result.content.length === 1 ? result.content[0].text : "",
    IsError: result.isError === true,
    Status: result._meta?.["sharedos/status"] ?? "",
    Code: result._meta?.["sharedos/code"] ?? "",
    Structured: result.structuredContent !== undefined,
  });
}
console.log(JSON.stringify({
  server: client.getServerVersion().name,
  tools: list.tools.map((tool) => tool.name),
  seen,
}));
await client.close();
