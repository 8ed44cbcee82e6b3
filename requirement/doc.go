// Package requirement turns the CEL expression of a tool declaration into the path
// that a call's requirement names.
//
// An expression sees one variable, args: the parsed arguments of the call. It is
// compiled once against the tool's input schema, so that a member the schema does
// not have is a fault of the declaration and not a surprise at run time. It is
// evaluated under a cost limit, with the standard library of CEL and a few functions
// more (see [Compile]), and yields a list of valid path segments or an error. It
// decides nothing: the kernel keeps the path below the tool's ceiling and asks the
// grants.
package requirement
