package sidecar

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	"github.com/sharedos-dev/operator/mcp"
)

// ErrCatalogueMismatch says that the attach answer, the execution token and the
// catalogue are not of one turn: what was fetched must not be served.
var ErrCatalogueMismatch = errors.New("catalogue, execution token and attach answer do not belong together")

// errNoClaims never repeats the token.
var errNoClaims = errors.New("the execution token cannot be read")

// readClaims reads what the token says. Its signature is for the kernel to check:
// the sidecar has no key, and trusts the token for nothing but this comparison.
func readClaims(token string) (mcp.ExecutionClaims, error) {
	payload, signature, ok := strings.Cut(token, ".")
	if !ok || signature == "" || len(token) > mcp.MaxTokenLength {
		return mcp.ExecutionClaims{}, errNoClaims
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil {
		return mcp.ExecutionClaims{}, errNoClaims
	}
	var claims mcp.ExecutionClaims
	if err := strictjson.Unmarshal(raw, &claims, strictjson.Options{}); err != nil {
		return mcp.ExecutionClaims{}, errNoClaims
	}
	return claims, nil
}

// verify compares the three accounts of the turn. The catalogue's own hash is
// computed here again: what it says about itself counts for nothing.
func verify(attached *bridge.AttachResponse, catalogue *contract.Catalogue) error {
	claims, err := readClaims(attached.ExecutionToken)
	if err != nil {
		return err
	}
	hash, err := contract.CatalogHash(catalogue.Tools)
	if err != nil {
		return ErrCatalogueMismatch
	}
	if hash != attached.CatalogHash || hash != claims.CatalogHash || hash != catalogue.CatalogHash ||
		attached.ExecutionID != claims.ExecutionID || attached.ExecutionID != catalogue.ExecutionID ||
		attached.NamespaceID != claims.NamespaceID {
		return ErrCatalogueMismatch
	}
	return nil
}
