package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// entry is one constant of type ConditionType or ConditionReason.
type entry struct {
	isType bool
	name   string // of the constant
	value  string
	doc    string
}

// group is one constant declaration: a heading comment and its entries.
type group struct {
	heading string
	entries []entry
}

// readPackage returns the groups of every file that declares conditions, in the
// order of file names and of the source.
func readPackage(folder string) ([]group, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list folder %s: %w", folder, err)
	}
	var groups []group
	for _, path := range paths {
		source, err := os.ReadFile(path) //nolint:gosec // The folder is the argument.
		if err != nil {
			return nil, fmt.Errorf("read file: %w", err)
		}
		found, err := parseGroups(path, source)
		if err != nil {
			return nil, err
		}
		groups = append(groups, found...)
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("folder %s declares no conditions", folder)
	}
	return groups, nil
}

// parseGroups returns the groups of one source file.
func parseGroups(path string, source []byte) ([]group, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse file: %w", err)
	}
	var groups []group
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		found, err := parseGroup(constants)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", path, err)
		}
		if len(found.entries) > 0 {
			groups = append(groups, found)
		}
	}
	return groups, nil
}

func parseGroup(constants *ast.GenDecl) (group, error) {
	result := group{heading: text(constants.Doc)}
	for _, spec := range constants.Specs {
		constant := spec.(*ast.ValueSpec) //nolint:forcetypeassert,errcheck // A constant declaration holds nothing else.
		kind, ok := constant.Type.(*ast.Ident)
		if !ok || (kind.Name != "ConditionType" && kind.Name != "ConditionReason") {
			continue
		}
		literal, ok := constant.Values[0].(*ast.BasicLit)
		if !ok {
			return group{}, fmt.Errorf("constant %s is not a literal", constant.Names[0].Name)
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			return group{}, fmt.Errorf("constant %s: %w", constant.Names[0].Name, err)
		}
		doc := text(constant.Doc)
		if doc == "" || result.heading == "" {
			return group{}, fmt.Errorf("constant %s or its group has no comment", constant.Names[0].Name)
		}
		result.entries = append(result.entries, entry{
			isType: kind.Name == "ConditionType", name: constant.Names[0].Name, value: value, doc: doc,
		})
	}
	return result, nil
}

// text returns a comment as one line.
func text(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
