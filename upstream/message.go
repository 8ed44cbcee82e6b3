package upstream

import (
	"bytes"
	"errors"
	"strconv"
	"sync"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Methods of the protocol that the door treats as its own.
const (
	methodList    = "tools/list"
	methodCall    = "tools/call"
	methodHello   = "initialize"
	noticeChanged = "notifications/tools/list_changed"
)

// maxID is the longest id of a server's request, which is told back to it.
const maxID = 256

// question is a request that was sent and not answered yet.
type question struct {
	method string
	x      *exchange
}

// questions are the requests that wait for their answers, by id as it was written.
type questions struct {
	mu      sync.Mutex
	waiting map[string]question
}

func (q *questions) ask(id string, asked question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[string]question{}
	}
	q.waiting[id] = asked
}

// take ends the waiting; only one answer to a request counts.
func (q *questions) take(id string) (question, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked, ok := q.waiting[id]
	delete(q.waiting, id)
	return asked, ok
}

// sift reads what a server sent as one message, or as a batch, and returns the
// messages that the SDK may see, with the ids of the requests they answer. Whatever is
// not of the protocol is left out. It returns errTooLarge for more values than a
// document may hold: nothing is made of those.
func (q *questions) sift(data []byte) (messages [][]byte, answered []string, err error) {
	node, err := strictjson.Parse(data)
	if fault, ok := errors.AsType[*strictjson.Error](err); ok && fault.Rule == strictjson.RuleTooManyValues {
		return nil, nil, errTooLarge
	}
	if err != nil {
		return nil, nil, err
	}
	batch := []strictjson.Node{node}
	if node.Kind == strictjson.Array {
		batch = node.Children
	}
	for i := range batch {
		message, id := q.one(batch[i])
		if message != nil {
			messages = append(messages, message)
		}
		if id != "" {
			answered = append(answered, id)
		}
	}
	return messages, answered, nil
}

func (q *questions) one(node strictjson.Node) (message []byte, answered string) {
	version, _ := node.Member("jsonrpc")
	if version.Text != "2.0" {
		return nil, ""
	}
	id, hasID := node.Member("id")
	hasID = hasID && (id.Kind == strictjson.Number || id.Kind == strictjson.String) && len(id.Raw) <= maxID
	if method, ok := node.Member("method"); ok {
		return incoming(method, id, hasID), ""
	}
	if !hasID {
		return nil, ""
	}
	asked, ok := q.take(string(id.Raw))
	if !ok {
		return nil, "" // late, or made up
	}
	return asked.answer(node, id.Raw), string(id.Raw)
}

// incoming is a request or a notification of the server's. Requests lose their
// parameters: nothing here would act on them, and the SDK says so to the server.
func incoming(method, id strictjson.Node, hasID bool) []byte {
	switch {
	case method.Kind != strictjson.String:
		return nil
	case hasID:
		return join(`{"jsonrpc":"2.0","id":`, string(id.Raw), `,"method":`, string(method.Raw), `}`)
	case method.Text == noticeChanged:
		return []byte(`{"jsonrpc":"2.0","method":"` + noticeChanged + `"}`)
	default:
		return nil
	}
}

// answer fills the exchange. What the SDK need not look into, it does not get.
func (a question) answer(node strictjson.Node, id []byte) []byte {
	if fault, ok := node.Member("error"); ok && fault.Kind == strictjson.Object {
		code, _ := fault.Member("code")
		words, _ := fault.Member("message")
		number, err := strconv.ParseInt(code.Text, 10, 64)
		if err != nil {
			number = -32603
		}
		a.x.set(func(o *outcome) { o.refused, o.code, o.message = true, number, words.Text })
		return errorMessage(id, number)
	}
	result, ok := node.Member("result")
	if !ok || result.Kind != strictjson.Object {
		a.x.set(func(o *outcome) { o.malformed = true })
		return errorMessage(id, -32603)
	}
	a.x.set(func(o *outcome) { o.result = result.Raw })
	shown := result.Raw
	switch a.method {
	case methodCall:
		shown = []byte(`{"content":[]}`)
	case methodList:
		shown = []byte(`{"tools":[]}`)
	case methodHello:
		shown = greeting(result)
	}
	return join(`{"jsonrpc":"2.0","id":`, string(id), `,"result":`, string(shown), `}`)
}

// greeting is what the SDK gets of an answer to initialize: it decodes all that it gets.
func greeting(result strictjson.Node) []byte {
	var b bytes.Buffer
	keep(&b, result, []string{"protocolVersion", "capabilities", "serverInfo"})
	return b.Bytes()
}

// errorMessage answers a request in the server's place.
func errorMessage(id []byte, code int64) []byte {
	return join(`{"jsonrpc":"2.0","id":`, string(id), `,"error":{"code":`, strconv.FormatInt(code, 10), `,"message":"the server's answer was not taken"}}`)
}

// join writes the parts on one line, as an event has to be.
func join(parts ...string) []byte {
	var b bytes.Buffer
	for _, part := range parts {
		b.WriteString(part)
	}
	out := b.Bytes()
	if bytes.ContainsAny(out, "\r\n") { // between tokens; inside of strings there are none
		out = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, out)
	}
	return out
}
