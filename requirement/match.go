package requirement

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Limits of matches. CEL counts a match when it is over, and one of a large pattern on
// a large text takes seconds; so both are bounded before.
const (
	// MaxMatchedText is the longest text that matches looks at, bytes.
	MaxMatchedText = 4096
	// maxPatternSize bounds a compiled pattern, in instructions; a match takes at most
	// their number times the text's length.
	maxPatternSize = 256
)

// patterns are the compiled patterns of one expression, by their text.
type patterns map[string]*regexp.Regexp

// library is CEL's standard library with matches replaced.
func (p patterns) library() []cel.EnvOption {
	two := []*cel.Type{cel.StringType, cel.StringType}
	return []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction(overloads.Matches)))),
		cel.Function(overloads.Matches,
			cel.MemberOverload(overloads.MatchesString, two, cel.BoolType), cel.Overload(overloads.Matches, two, cel.BoolType),
			cel.SingletonBinaryBinding(p.match)),
	}
}

func (p patterns) match(text, pattern ref.Val) ref.Val {
	t, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	written, ok := pattern.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(pattern)
	}
	compiled, ok := p[string(written)]
	if !ok {
		return types.NewErr("the pattern of matches is not written in the expression")
	}
	if len(t) > MaxMatchedText {
		return types.NewErr("matches looks at texts of at most %d bytes", MaxMatchedText)
	}
	return types.Bool(compiled.MatchString(string(t)))
}

// compile takes up the patterns of an expression. Each is a literal, because a caller
// could choose it otherwise.
func (p patterns) compile(checked *ast.AST) error {
	calls := ast.MatchDescendants(ast.NavigateAST(checked), ast.FunctionMatcher(overloads.Matches))
	for _, call := range calls {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		at := checked.SourceInfo().GetStartLocation(pattern.ID())
		text, ok := "", pattern.Kind() == ast.LiteralKind
		if ok {
			text, ok = pattern.AsLiteral().Value().(string)
		}
		if !ok {
			return fmt.Errorf("%w: the pattern of matches at %d:%d must be written as a literal", ErrExpression, at.Line(), at.Column()+1)
		}
		compiled, err := compilePattern(text)
		if err != nil {
			return fmt.Errorf("%w: the pattern of matches at %d:%d: %w", ErrExpression, at.Line(), at.Column()+1, err)
		}
		p[text] = compiled
	}
	return nil
}

func compilePattern(text string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxPatternSize {
		return nil, fmt.Errorf("it is too large: %d steps, of at most %d", len(program.Inst), maxPatternSize)
	}
	return regexp.Compile(text)
}
