package files

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// reserved begins the names that are the provider's own.
const reserved = ".sharedos"

// checkPath judges a path again, because confinement must not depend on a caller.
func checkPath(path contract.Path) error {
	if path.Validate() != nil {
		return fail(plane.CodeInvalidPath, "The path is not valid.")
	}
	if slices.ContainsFunc(path, isReserved) {
		return fail(plane.CodeInvalidPath, "Names that begin with %s are reserved.", reserved)
	}
	return nil
}

// isReserved ignores case, for file systems that do.
func isReserved(name string) bool {
	return len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved)
}

// addressable reports whether a path can express and may show the name.
func addressable(name string) bool { return contract.ValidateSegment(name) == nil }

func validWorld(name string) bool { return addressable(name) && name[0] != '.' }

// decodeInput decodes an operation's input strictly: the direct resource route has
// no schema before it.
func decodeInput(raw contract.Value, v any) error {
	if err := strictjson.Unmarshal(raw, v, strictjson.Options{}); err != nil {
		return fail(plane.CodeInvalidInput, "The input is not valid: %v", err)
	}
	return nil
}

// limited checks an optional count and puts its default in.
func limited(n *int, standard, most int) error {
	if *n == 0 {
		*n = standard
	}
	if *n < 1 || *n > most {
		return fail(plane.CodeInvalidInput, "limit must be 1 to %d.", most)
	}
	return nil
}

// textOf checks a required text of at most limit code points.
func textOf(name, s string, limit int) error {
	if n := utf8.RuneCountInString(s); n < 1 || n > limit {
		return fail(plane.CodeInvalidInput, "%s must have 1 to %d characters.", name, limit)
	}
	return nil
}

// contentOf decodes the content of a write.
func contentOf(in *plane.WriteInput) ([]byte, error) {
	switch in.Encoding {
	case "", plane.EncodingUTF8:
		return []byte(in.Content), nil
	case plane.EncodingBase64:
		data, err := base64.StdEncoding.Strict().DecodeString(in.Content)
		if err != nil {
			return nil, fail(plane.CodeInvalidContent, "The content is not base64.")
		}
		return data, nil
	default:
		return nil, fail(plane.CodeInvalidInput, "encoding must be utf-8 or base64.")
	}
}
