package requirement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
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
	args *shape
	// program counts what it costs.
	program cel.Program
	// uncounted is for arguments of at most small bytes, by which the limit cannot be
	// passed. Counting is most of what a short evaluation takes.
	uncounted cel.Program
	small     int
}

// Compile compiles an expression against the input schema of its tool. Beside CEL's
// standard library there are string.split(separator), string.segments() and
// string.lowerAscii(); the pattern of matches is a literal. Where
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
	matched := patterns{}
	env, err := cel.NewCustomEnv(slices.Concat(matched.library(), []cel.EnvOption{
		withArguments(args, s.objects), cel.EnableIdentifierEscapeSyntax(), cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxNesting), cel.ParserExpressionSizeLimit(MaxExpression),
	}, functions())...)
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
	if err := matched.compile(checked.NativeRep()); err != nil {
		return nil, err
	}
	return newPath(env, checked, args, len(matched) == 0)
}

// newPath plans the evaluation. CEL's optimizer would put its own matches, which has no
// bounds, in the place of ours.
func newPath(env *cel.Env, checked *cel.Ast, args *shape, optimize bool) (*Path, error) {
	var options []cel.ProgramOption
	if optimize {
		options = append(options, cel.EvalOptions(cel.OptOptimize))
	}
	counted, err := env.Program(checked, append(slices.Clone(options), cel.CostLimit(CostLimit))...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	p := &Path{args: args, program: counted, small: uncountedSize(env, checked)}
	if p.small > 0 {
		if p.uncounted, err = env.Program(checked, options...); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrExpression, err)
		}
	}
	return p, nil
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
	program := p.program
	if args.Size() <= p.small {
		program = p.uncounted
	}
	out, _, err := program.Eval(activation{value})
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
