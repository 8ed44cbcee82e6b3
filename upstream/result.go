package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// contentMetadata marks an output that is a list of content blocks.
const contentMetadata = `{"sharedos/content":"mcp"}`

// output turns a result of tools/call into a handler's. Text alone is a string, its
// blocks joined by line ends; structured content is that object; anything else is
// {"content": blocks}, as a harness is to see them. With an output schema the structured
// content is the output whatever stands beside it. Nothing of _meta is kept.
func output(raw []byte, structured bool) (kernel.Output, error) {
	invalid := failure(contract.CodeInvalidToolResult, false)
	if !strictjson.Fits(raw) {
		return kernel.Output{}, failure(CodeTooLarge, false)
	}
	node, err := strictjson.Parse(raw)
	if err != nil {
		return kernel.Output{}, invalid
	}
	blocks, plain, ok := content(node)
	if !ok {
		return kernel.Output{}, invalid
	}
	if failed, _ := node.Member("isError"); failed.Kind == strictjson.Bool && failed.Raw[0] == 't' {
		return kernel.Output{}, failureSaying(CodeTool, plain.String())
	}
	object, has := node.Member("structuredContent")
	has = has && object.Kind == strictjson.Object
	switch {
	case has && (structured || !blocks.media):
		return kernel.Output{Value: bytes.Clone(object.Raw)}, nil
	case blocks.media:
		return kernel.Output{Value: blocks.value(), Metadata: contract.Object(contentMetadata)}, nil
	}
	text, err := json.Marshal(plain.String())
	if err != nil {
		return kernel.Output{}, invalid
	}
	return kernel.Output{Value: text}, nil
}

// kept are content blocks with what is known of them.
type kept struct {
	raw   bytes.Buffer
	count int
	media bool // one is more than text
}

func (k *kept) value() contract.Value {
	return join(`{"content":[`, k.raw.String(), `]}`)
}

// content reads the blocks; ok is false when one is none of the protocol.
func content(result strictjson.Node) (blocks *kept, plain *strings.Builder, ok bool) {
	blocks, plain = &kept{}, &strings.Builder{}
	list, has := result.Member("content")
	if has && list.Kind != strictjson.Array {
		return nil, nil, false
	}
	for i := range list.Children {
		block := list.Children[i]
		kind, _ := block.Member("type")
		fields, known := blockFields[kind.Text]
		if !known || !valid(kind.Text, block) {
			return nil, nil, false
		}
		if kind.Text == "text" {
			if text, _ := block.Member("text"); plain.Len() > 0 {
				plain.WriteString("\n" + text.Text)
			} else {
				plain.WriteString(text.Text)
			}
		} else {
			blocks.media = true
		}
		if blocks.count++; blocks.count > 1 {
			blocks.raw.WriteByte(',')
		}
		keep(&blocks.raw, block, fields)
	}
	return blocks, plain, true
}

// blockFields are the members of each kind of block that a harness may see.
var blockFields = map[string][]string{ //nolint:gochecknoglobals // a constant table
	"text":          {"type", "text", "annotations"},
	"image":         {"type", "data", "mimeType", "annotations"},
	"audio":         {"type", "data", "mimeType", "annotations"},
	"resource":      {"type", "resource", "annotations"},
	"resource_link": {"type", "uri", "name", "title", "description", "mimeType", "size", "annotations"},
}

// nestedFields are those of the objects inside of a block.
func nestedFields(member string) []string {
	switch member {
	case "resource":
		return []string{"uri", "mimeType", "text", "blob"}
	case "capabilities":
		return []string{"tools"}
	case "tools":
		return []string{"listChanged"}
	case "serverInfo":
		return []string{"name", "version"}
	case "annotations":
		return []string{"audience", "priority", "lastModified"}
	default:
		return nil
	}
}

// keep writes an object with the named members only.
func keep(b *bytes.Buffer, object strictjson.Node, fields []string) {
	b.WriteByte('{')
	first := true
	for _, name := range fields {
		member, ok := object.Member(name)
		if !ok {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString(`"` + name + `":`)
		if nested := nestedFields(name); nested != nil && member.Kind == strictjson.Object {
			keep(b, member, nested)
		} else {
			b.Write(member.Raw)
		}
	}
	b.WriteByte('}')
}

// valid reports whether a block holds what its kind needs.
func valid(kind string, block strictjson.Node) bool {
	text := func(of strictjson.Node, name string) bool {
		member, ok := of.Member(name)
		return ok && member.Kind == strictjson.String
	}
	encoded := func(of strictjson.Node, name string) bool {
		member, _ := of.Member(name)
		_, err := base64.StdEncoding.DecodeString(member.Text)
		return text(of, name) && err == nil
	}
	switch kind {
	case "text":
		return text(block, "text")
	case "image", "audio":
		return encoded(block, "data") && text(block, "mimeType")
	case "resource":
		resource, _ := block.Member("resource")
		return text(resource, "uri") && text(resource, "text") != encoded(resource, "blob")
	default:
		return text(block, "uri") && text(block, "name")
	}
}
