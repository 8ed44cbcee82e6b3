package requirement

import (
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
)

// uncountedSize is the size of arguments, bytes, up to which an expression cannot pass
// the limit, or 0.
func uncountedSize(env *cel.Env, checked *cel.Ast) int {
	for _, size := range []uint64{math.MaxInt64, 4096, 1024, 256, 64} {
		estimate, err := env.EstimateCost(checked, sizes{size})
		if err != nil {
			return 0
		}
		if estimate.Max <= CostLimit {
			return int(min(size, math.MaxInt))
		}
	}
	return 0
}

// sizes knows that nothing in the arguments is larger than the whole of them.
type sizes struct{ whole uint64 }

// EstimateSize implements the cost estimator.
func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if len(node.Path()) == 0 { // something computed
		return nil
	}
	return &checker.SizeEstimate{Min: 0, Max: s.whole}
}

// EstimateCallCost implements the cost estimator for the functions of this package:
// they look at each character once, and yield no more than there are.
func (s sizes) EstimateCallCost(function, _ string, target *checker.AstNode, _ []checker.AstNode) *checker.CallEstimate {
	if target == nil {
		return nil
	}
	switch function {
	case functionSplit, functionSegments, functionLower:
	default:
		return nil
	}
	size := (*target).ComputedSize()
	if size == nil {
		if len((*target).Path()) == 0 {
			return nil
		}
		size = &checker.SizeEstimate{Min: 0, Max: s.whole}
	}
	result := checker.SizeEstimate{Min: 0, Max: size.Add(checker.SizeEstimate{Min: 1, Max: 1}).Max}
	return &checker.CallEstimate{CostEstimate: result.MultiplyByCostFactor(1), ResultSize: &result}
}
