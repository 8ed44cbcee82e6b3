// Drives every route with a client whose types openapi-typescript made from the
// served document, and prints what it saw, one JSON object. Argument: the base URL.
// It is compiled with tsc --strict before it runs: what does not fit the document
// does not compile, and what must not fit is marked.
import createClient from "openapi-fetch";
import type { components, paths } from "./sharedos.d.ts";

const baseUrl = process.argv[2]!;
const client = createClient<paths>({
  baseUrl,
  headers: { authorization: `Bearer ${process.env["PEER_TOKEN"]}`, "x-request-id": "peer-1" },
});

const at = "2026-12-01T09:00:00.000Z";
const resource: components["schemas"]["ResourceRef"] = { namespace: "files", path: ["Work", "atlas"] };
const alice: components["schemas"]["Address"] = { kind: "human", userId: "alice" };
const agent: components["schemas"]["Address"] = { kind: "agent", agentId: "alice-assistant" };
const message: components["schemas"]["MessageEnvelope"] = {
  version: "1", id: "message-1", sender: agent, receiver: alice, purpose: "atlas-status",
  payload: { text: "Atlas ships." }, traceId: "trace-1", createdAt: at,
};

const seen: Record<string, unknown> = {};

// note keeps an answer; its type must be known, so that the caller's access to data
// is checked.
function note(name: string, got: { response: Response; data?: unknown; error?: { error: { code: string; requestId: string } } }): void {
  seen[name] = {
    status: got.response.status,
    requestId: got.response.headers.get("x-request-id"),
    noStore: got.response.headers.get("cache-control") === "no-store",
    code: got.error?.error.code ?? "",
  };
}

const health = await client.GET("/health");
note("health", health);
const protocol: "1" | undefined = health.data?.protocolVersion;

const document = await client.GET("/openapi.json");
note("openapi", document);

const decision = await client.POST("/v1/authorize", { body: { resource, action: "read" } });
note("authorize", decision);
const allowed: boolean | undefined = decision.data?.allowed;

const tools = await client.GET("/v1/tools", { params: { header: { "x-sharedos-purpose": "atlas-status" } } });
note("listTools", tools);
const names: string[] = (tools.data ?? []).map((tool) => tool.name);

const reach = await client.GET("/v1/reach");
note("reach", reach);
const places: number = reach.data?.reach?.length ?? 0;

const namespaces = await client.GET("/v1/tools/namespaces");
note("listToolNamespaces", namespaces);

const updated = await client.PUT("/v1/tools/namespaces", { body: { disable: ["sharedos"] } });
note("updateToolNamespaces", updated);
const enabled: number | undefined = updated.data?.summary.enabled;

const called = await client.POST("/v1/tools/invoke", {
  body: { id: "call-1", tool: "files.read", arguments: { path: ["Work", "atlas"] }, traceId: "trace-1", requestedAt: at },
});
note("invokeTool", called);

const denied = await client.POST("/v1/tools/invoke", {
  body: { id: "call-2", tool: "files.read", arguments: { path: ["Private"] }, traceId: "trace-1", requestedAt: at },
});
note("denied", denied);
const refusal: string | undefined = denied.data?.error?.code;

const operated = await client.POST("/v1/resources/invoke", { body: { operationId: "op-1", resource, action: "read", input: null } });
note("invokeResource", operated);

const sent = await client.POST("/v1/messages", { body: message });
note("sendMessage", sent);

const ran = await client.POST("/v1/turns", {
  body: { version: "1", executionId: "execution-1", agent, message: { ...message, sender: alice, receiver: agent }, options: { maxSteps: 8 } },
});
note("executeTurn", ran);
const events: string[] = (ran.data?.events ?? []).map((event) => event.type);

// A body cannot describe its own authority: not to the compiler, and not to the server.
const smuggling: components["schemas"]["RemoteResourceOperation"] = {
  operationId: "op-2", resource, action: "read",
  // @ts-expect-error context is no member of the wire's shape
  context: {},
};
const smuggled = await client.POST("/v1/resources/invoke", { body: smuggling });
note("smuggled", smuggled);
// @ts-expect-error a verb that the path does not have
const wrongVerb = await client.DELETE("/v1/tools");
note("wrongVerb", wrongVerb as never);
// @ts-expect-error a path that there is not
const unknown = await client.GET("/v1/grants");
note("unknown", unknown as never);
// @ts-expect-error an address of two kinds
const chimera: components["schemas"]["Address"] = { kind: "human", agentId: "alice" };
void chimera;

const stranger = await createClient<paths>({ baseUrl }).GET("/v1/tools");
note("stranger", stranger);

console.log(JSON.stringify({
  seen, protocol, allowed, names, places, enabled, refusal, events,
  output: called.data?.output, turn: ran.data?.output, title: (document.data as { info?: { title?: string } } | undefined)?.info?.title,
}));
