package requirement

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Limits of an expression.
const (
	// MaxExpression is the longest expression, bytes.
	MaxExpression = 4096
	// CostLimit bounds one evaluation, in CEL's own units: about one for each step,
	// and one for ten characters that are looked at.
	CostLimit = 10_000
	// maxNesting bounds an expression's nesting.
	maxNesting = 50
)

// ErrExpression means that an expression cannot be used with the tool's schema.
var ErrExpression = errors.New("the path expression cannot be used")

// Path is a compiled expression. It is safe for concurrent use.
type Path struct {
	program cel.Program
	args    *shape
}

// Compile compiles an expression against the input schema of its tool. Beside CEL's
// standard library there are string.split(separator) and string.lowerAscii(). Where
// the schema names the members of an object, an expression may use no others; a
// member whose name is no identifier is written args.`like-this`. The result's type
// must be a list of strings, as far as the schema tells. Its error wraps
// [ErrExpression] and says where the fault is.
func Compile(expression string, inputSchema contract.Object) (*Path, error) {
	if len(expression) > MaxExpression {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrExpression, MaxExpression)
	}
	root, err := strictjson.Parse(inputSchema)
	if err != nil {
		return nil, fmt.Errorf("%w: the input schema: %w", ErrExpression, err)
	}
	s := &shapes{root: root, objects: map[string]*shape{}}
	args := s.arguments()
	env, err := cel.NewEnv(append([]cel.EnvOption{
		withArguments(args, s.objects), cel.EnableIdentifierEscapeSyntax(), cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxNesting), cel.ParserExpressionSizeLimit(MaxExpression),
	}, functions()...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	checked, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrExpression, strings.TrimSpace(err.Error()))
	}
	if t := checked.OutputType(); !isPath(t) {
		return nil, fmt.Errorf("%w: it yields %s, and a path is a list(string), such as ['pages', args.page]", ErrExpression, t)
	}
	if err := segments(checked.NativeRep(), checked.NativeRep().Expr()); err != nil {
		return nil, err
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if !cheap(env, checked) {
		options = append(options, cel.CostLimit(CostLimit))
	}
	program, err := env.Program(checked, options...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	return &Path{program: program, args: args}, nil
}

// cheap reports whether no arguments at all can make an expression pass the limit.
// Then nothing needs to be counted, which is most of what a short one costs.
func cheap(env *cel.Env, checked *cel.Ast) bool {
	estimate, err := env.EstimateCost(checked, sizes{})
	return err == nil && estimate.Max <= CostLimit
}

// sizes knows the size of nothing, so that whatever depends on one is dear.
type sizes struct{}

// EstimateSize implements the cost estimator.
func (sizes) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }

// EstimateCallCost implements the cost estimator.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// isPath reports whether a value of the type can be a list of strings.
func isPath(t *cel.Type) bool {
	if t.Kind() == cel.DynKind {
		return true
	}
	if t.Kind() != cel.ListKind {
		return false
	}
	elem := t.Parameters()[0]
	return elem.Kind() == cel.StringKind || elem.Kind() == cel.DynKind || elem.Kind() == types.TypeParamKind
}

// segments finds, where the list is written out, an entry that cannot be a string.
func segments(checked *ast.AST, e ast.Expr) error {
	switch e.Kind() {
	case ast.ListKind:
		for _, entry := range e.AsList().Elements() {
			if t := checked.GetType(entry.ID()); t.Kind() != cel.StringKind && t.Kind() != cel.DynKind {
				at := checked.SourceInfo().GetStartLocation(entry.ID())
				return fmt.Errorf("%w: a segment is a string, and the one at %d:%d is of type %s; write string(…) around it",
					ErrExpression, at.Line(), at.Column()+1, t)
			}
		}
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Conditional:
			args = args[1:]
		case operators.Add:
		default:
			return nil
		}
		for _, arg := range args {
			if err := segments(checked, arg); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

// Of evaluates the expression for one call. It fails when a member is missing, when
// the cost limit is passed, and when the outcome is no list of at most 64 valid
// segments; an empty list is the root.
func (p *Path) Of(args kernel.Arguments) (contract.Path, error) {
	value, err := p.args.value(args.Value())
	if err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	out, _, err := p.program.Eval(activation{value})
	if err != nil {
		return nil, fmt.Errorf("evaluate the path: %w", err)
	}
	list, ok := out.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("evaluate the path: it is a %s and no list", out.Type().TypeName())
	}
	size, ok := list.Size().(types.Int)
	if !ok || size > contract.MaxPathSegments {
		return nil, fmt.Errorf("evaluate the path: it has more than %d segments", contract.MaxPathSegments)
	}
	path := make(contract.Path, size)
	for i := range size {
		segment, ok := list.Get(i).(types.String)
		if !ok {
			return nil, fmt.Errorf("evaluate the path: segment %d is no string", i)
		}
		if err := contract.ValidateSegment(string(segment)); err != nil {
			return nil, fmt.Errorf("evaluate the path: segment %d: %w", i, err)
		}
		path[i] = string(segment)
	}
	return path, nil
}
