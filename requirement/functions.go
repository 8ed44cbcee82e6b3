package requirement

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Names of the functions of this package.
const (
	functionSplit    = "split"
	functionSegments = "segments"
	functionLower    = "lowerAscii"
)

// functions are what paths need beside the standard library. They take time
// and memory in proportion to their input; CEL's own string extension has some that
// do not, which a cost limit would see too late.
func functions() []cel.EnvOption {
	text := []*cel.Type{cel.StringType}
	return []cel.EnvOption{
		cel.Function(functionSplit, cel.MemberOverload("string_split_string", []*cel.Type{cel.StringType, cel.StringType},
			cel.ListType(cel.StringType), cel.BinaryBinding(split))),
		cel.Function(functionSegments, cel.MemberOverload("string_segments", text, cel.ListType(cel.StringType), cel.UnaryBinding(segmentsOf))),
		cel.Function(functionLower, cel.MemberOverload("string_lower_ascii", text, cel.StringType, cel.UnaryBinding(lower))),
	}
}

func split(text, separator ref.Val) ref.Val {
	t, ok := text.(types.String)
	s, ok2 := separator.(types.String)
	if !ok || !ok2 || s == "" {
		return types.NewErr("split needs a separator")
	}
	return types.NewStringList(types.DefaultTypeAdapter, strings.Split(string(t), string(s)))
}

func segmentsOf(text ref.Val) ref.Val {
	t, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	out := []string{}
	for part := range strings.SplitSeq(string(t), "/") {
		if part != "" {
			out = append(out, part)
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, out)
}

func lower(text ref.Val) ref.Val {
	t, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	out := []byte(t)
	for i, b := range out {
		if 'A' <= b && b <= 'Z' {
			out[i] = b + 'a' - 'A'
		}
	}
	return types.String(out)
}
