// Command harness is a small agent without a model: it shows what any harness does
// in a SharedOS pod, with a real MCP client and nothing of the operator's own code.
//
// It reads the message ($SHAREDOS_MESSAGE_FILE) and the connection file
// ($SHAREDOS_MCP_CONFIG), connects to the bridge, lists the tools it was granted,
// makes some calls, and prints one JSON report to standard output. What it is doing
// meanwhile goes to standard error.
//
// A message that is text gets the calls of the samples: look at the project's
// folder, read its status, and try what was not granted. A message that is an
// object says what to do, which is how tests steer it:
//
//	{
//	  "calls":        [{"tool": "files.read", "arguments": {"path": ["Work"]}}],
//	  "sleepSeconds": 5,
//	  "exitCode":     3,
//	  "probe":        ["/var/run/secrets/sharedos-kernel/token"]
//	}
//
// All are optional. It sleeps between listing and calling; probe tries to read
// files, and the report says whether it could.
//
// With the argument serve it is the other side instead, for tests of brokered tools: an
// MCP server with one tool, get-page, on $ADDRESS, with the PEM certificate and key in
// $TLS_CERTIFICATE and $TLS_KEY, for those who show the bearer token $CREDENTIAL. It prints a line for every call.
//
// Exit codes: the message's exitCode, else 0; 1 when there was no session with the
// bridge, or it broke; 143 after SIGTERM.
package main
