// Loads an emitted connection file with the MCP client of a harness, connects, and
// prints what that client made of it. Arguments: deepseek or pi, the file.
import { readFileSync } from "node:fs";

const [harness, file] = process.argv.slice(2);

async function deepseek() {
  const { parse } = await import("yaml");
  const { Config, apply, name } = await import("@deepseek-ai/dsh-mcp-client");
  const [{ insert: [entry] }] = parse(readFileSync(file, "utf8"));
  const config = Config(entry.config);
  const tools = [];
  const undo = [];
  // What the plugin needs of its host: a registry of tools and a place to clean up.
  const host = {
    root: {},
    get: () => undefined,
    logger: { info() {}, warn() {}, error: (line) => console.error(line) },
    effect: (effect) => undo.push(effect()),
    tools: { register: (tool) => (tools.push(tool.name), () => {}) },
  };
  await apply(host, config);
  for (const dispose of undo.reverse()) await dispose?.();
  return { entry: `${entry.id} ${entry.name} ${name}`, tools: tools.sort(), timeoutMs: config.toolCallTimeoutMs };
}

async function pi() {
  // The adapter exports none of its parts; Pi loads it from its files as well.
  const parts = new URL("./node_modules/pi-mcp-adapter/dist/", import.meta.url);
  const { loadMcpConfig } = await import(new URL("config.js", parts));
  const { McpServerManager } = await import(new URL("server-manager.js", parts));
  const config = loadMcpConfig(file, process.cwd());
  const [[name, definition]] = Object.entries(config.mcpServers);
  const manager = new McpServerManager();
  const connection = await manager.connect(name, definition);
  const tools = (await connection.client.listTools()).tools.map((tool) => tool.name);
  const timeoutMs = manager.getRequestOptions(name)?.timeout;
  await manager.closeAll();
  return { entry: `${name} ${definition.lifecycle} ${definition.auth}`, tools: tools.sort(), timeoutMs };
}

console.log(JSON.stringify(await (harness === "pi" ? pi() : deepseek())));
process.exit(0);
