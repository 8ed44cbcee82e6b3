package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// FuzzResult: whatever a server answers, the output is valid JSON without _meta, or
// there is none.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":1},"isError":false}`), false)
	f.Add([]byte(`{"content":[{"type":"image","data":"aGk=","mimeType":"a/b","_meta":{"x":1}}]}`), true)
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"a","blob":"aGk=","_meta":{}}}],"isError":true}`), true)
	f.Fuzz(func(t *testing.T, raw []byte, structured bool) {
		out, err := output(raw, structured)
		if err != nil {
			return
		}
		node, err := strictjson.Parse(out.Value)
		if err != nil {
			t.Fatalf("%q: %v", out.Value, err)
		}
		if len(out.Metadata) == 0 {
			return
		}
		blocks, _ := node.Member("content")
		for _, block := range blocks.Children {
			if _, ok := block.Member("_meta"); ok {
				t.Errorf("%s holds _meta", out.Value)
			}
		}
	})
}

// FuzzStream: whatever comes as a stream, only messages of the protocol come through,
// and an answer only to what was asked.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n"))
	f.Add([]byte("id: 7\nretry: 1\n\n: x\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"error\":{\"code\":1,\"message\":\"m\"}}\r\n\r\n"))
	f.Add([]byte("data: [{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"},{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}]\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := &door{base: &url.URL{}, limit: 512}
		d.questions.ask("1", question{methodCall, &exchange{}})
		response := &http.Response{Body: io.NopCloser(bytes.NewReader(raw))}
		p := &posted{door: d, response: response, id: "1", x: &exchange{}, detach: func() bool { return false }, end: func() {}}
		clean, err := io.ReadAll(newSieve(d, response.Body, p))
		if err != nil {
			t.Fatalf("the stream broke: %v", err)
		}
		answers := 0
		e := events{r: newReader(clean), limit: 1 << 20}
		for {
			ev, err := e.next()
			if err != nil {
				break
			}
			if !ev.hasData {
				continue
			}
			node, err := strictjson.Parse(ev.data)
			if err != nil {
				t.Fatalf("%q came through: %v", ev.data, err)
			}
			if _, ok := node.Member("method"); !ok {
				answers++
			}
		}
		if answers > 1 {
			t.Errorf("%d answers to one request", answers)
		}
	})
}

// FuzzList: whatever a list holds, its tools have a name and a schema or a flaw.
func FuzzList(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","title":"t","inputSchema":{"type":"object"},"outputSchema":{}}],"nextCursor":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tools, _, err := parsePage(raw)
		if err != nil {
			return
		}
		for _, tool := range sorted(tools) {
			if tool.Name == "" || tool.Description == "" || len(tool.Description) > 4*contract.MaxDescription || (tool.Flaw == "") != (tool.Digest != "") && tool.Flaw == "" {
				t.Errorf("%+v", tool)
			}
		}
	})
}

func newReader(data []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(data)) }
