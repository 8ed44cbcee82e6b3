package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
)

//go:generate go run ./internal/gen ../docs/reference

// Document is the OpenAPI 3.1 document of the API mounted at prefix, as it is served
// at /openapi.json. It is made of the table of routes and the contract's types.
func Document(prefix string) ([]byte, error) {
	s := newSchemas()
	paths := schema{}
	table := routes()
	for i := range table {
		rt := &table[i]
		item, ok := paths[rt.path].(schema)
		if !ok {
			item = schema{}
			paths[rt.path] = item
		}
		item[strings.ToLower(rt.method)] = s.operation(rt)
	}
	s.refer("Error", func() schema { return s.record(reflect.TypeFor[errorBody]()) })
	if stale := s.unused(); len(stale) > 0 {
		s.fail("rules of no field: %s", strings.Join(stale, ", "))
	}
	if s.err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", s.err)
	}
	document := schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "SharedOS HTTP API", "version": contract.Version,
			"description": "A denied operation is a 200: the status in the body says how it ended. Every answer has an x-request-id and cache-control: no-store.",
			"license":     schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []schema{{"url": either(prefix, "/")}},
		"paths":   paths,
		"security": []schema{
			{"bearer": []string{}},
		},
		"components": schema{
			"schemas":   s.named,
			"responses": errorResponses(),
			"headers": schema{
				"RequestID": schema{
					"description": "The request's own x-request-id, or a fresh one.", "required": true,
					"schema": requestIDSchema(),
				},
				"CacheControl": schema{"description": "Always no-store.", "required": true, "schema": schema{"type": "string", "const": "no-store"}},
			},
			"parameters": schema{
				"RequestID": schema{
					"name": "x-request-id", "in": "header", "description": "Echoed on the answer.", "schema": requestIDSchema(),
				},
				"Purpose": schema{
					"name": "x-sharedos-purpose", "in": "header", "schema": text(contract.MaxPurpose),
					"description": "A hint to the server's context resolver; never authority in itself.",
				},
			},
			"securitySchemes": schema{
				"bearer": schema{"type": "http", "scheme": "bearer", "description": "What the server's context resolver accepts; a bearer token on Kubernetes."},
			},
		},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	return out.Bytes(), nil
}

func requestIDSchema() schema {
	return schema{"type": "string", "minLength": 1, "maxLength": maxRequestID, "pattern": "^[!-~]+$"}
}

// operation describes one route.
func (s *schemas) operation(rt *route) schema {
	answer := s.of(rt.response, rt.path)
	if rt.list {
		answer = schema{"type": "array", "maxItems": contract.MaxCatalogueTools, "items": answer}
	}
	responses := schema{"200": success("The answer; a denial is one too.", answer)}
	if rt.accepted {
		responses["202"] = success("Taken over for delivery.", answer)
	}
	parameters := []schema{{"$ref": "#/components/parameters/RequestID"}}
	out := schema{"operationId": rt.operation, "summary": rt.summary, "description": rt.description, "responses": responses}
	for _, status := range rt.failures() {
		responses[strconv.Itoa(status)] = schema{"$ref": "#/components/responses/" + errorName(status)}
	}
	if rt.public {
		out["security"] = []schema{}
	} else {
		parameters = append(parameters, schema{"$ref": "#/components/parameters/Purpose"})
	}
	if rt.request != nil {
		out["requestBody"] = schema{
			"required": true, "content": schema{"application/json": schema{"schema": s.of(rt.request, rt.path)}},
		}
	}
	out["parameters"] = parameters
	return out
}

// failures are the statuses beside 2xx that a request with the right path and verb
// can end with.
func (rt *route) failures() []int {
	if rt.public {
		return nil
	}
	out := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}
	if rt.request != nil {
		out = append(out, http.StatusRequestEntityTooLarge)
	}
	return append(out, http.StatusInternalServerError)
}

func success(description string, body schema) schema {
	return schema{
		"description": description, "headers": headers(),
		"content": schema{"application/json": schema{"schema": body}},
	}
}

func headers() schema {
	return schema{
		"x-request-id":  schema{"$ref": "#/components/headers/RequestID"},
		"cache-control": schema{"$ref": "#/components/headers/CacheControl"},
	}
}

// errorStatus is one row of the table of error answers.
type errorStatus struct {
	status int
	codes  []string
	causes string
}

// errorStatuses is every status beside 2xx with its codes.
func errorStatuses() []errorStatus {
	return []errorStatus{
		{http.StatusBadRequest, []string{codeInvalidJSON, contract.CodeInvalidRequest}, "The body is not JSON; or it, or a header, does not match the contract"},
		{http.StatusUnauthorized, []string{codeUnauthenticated}, "The caller is not known; whatever was asked for"},
		{http.StatusForbidden, []string{codePermissionDenied}, "The caller is known and may not; the kernel was not asked"},
		{http.StatusNotFound, []string{codeNotFound}, "Unknown path"},
		{http.StatusMethodNotAllowed, []string{codeMethodNotAllowed}, "Wrong verb for a known path; Allow names the right ones"},
		{http.StatusRequestEntityTooLarge, []string{codePayloadTooLarge}, "The body is larger than the server takes"},
		{http.StatusInternalServerError, []string{codeInvalidAccessContext, codeInternalError}, "The caller's context is malformed; or anything else. Details never leak into the answer"},
	}
}

func errorName(status int) string {
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

func errorResponses() schema {
	out := schema{}
	for _, e := range errorStatuses() {
		fields := headers()
		if e.status == http.StatusUnauthorized {
			fields["www-authenticate"] = schema{"description": "How to authenticate.", "schema": schema{"type": "string"}}
		}
		out[errorName(e.status)] = schema{
			"description": e.causes + ": " + strings.Join(e.codes, ", ") + ".", "headers": fields,
			"content": schema{"application/json": schema{"schema": schema{"$ref": "#/components/schemas/Error"}}},
		}
	}
	return out
}
