// Package upstream is the client of one MCP server whose tools the kernel brokers.
// It finds the server's tools and calls them; it decides nothing.
//
// The protocol is the official Go SDK's: handshake, sessions, cancellation,
// Streamable HTTP and, for servers that know only that, HTTP with server-sent
// events. Below it stands a door (an [net/http.RoundTripper]), because the other side
// is not trusted and may be broken:
//
//   - What goes out is the server's own protocol and nothing else: the headers that
//     come from Secrets, to the one origin they are meant for. No session, token,
//     header or _meta of a harness is known here. Redirects are followed within the
//     origin only.
//   - What comes in is read strictly, message by message, within limits. What is no
//     message of the protocol, answers nothing that was asked, or notifies of
//     anything but a change of the tools, is left out, so that it cannot break the
//     session that other calls use.
//   - Results keep their exact digits: they go past the SDK, which would put numbers
//     through a float64.
//   - A call is made in a session in which the tools were listed, and the tool is still
//     the one that the caller was shown: behind a new session may be another server.
//   - One call's bad answer is that call's failure. A session that the server forgot
//     is made anew, and a call is repeated only when it surely was not executed.
//
// Limits: an answer is at most [DefaultMaxAnswer] bytes (Options can say otherwise) and
// 131,072 JSON values, a list of tools at most [MaxTools] in [MaxPages] pages, a schema
// at most [MaxSchema] bytes, and all that are kept [MaxSchemas].
package upstream
