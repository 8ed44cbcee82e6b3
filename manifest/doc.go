// Package manifest reads the five kinds from folders of YAML, as they lie in Git and
// without a cluster.
//
// A document is checked against the schema and, where they can be evaluated offline,
// the rules of its resource definition; then it is decoded strictly. Every fault
// names file and line. Documents of other API groups, and kustomization files, are
// passed over: they are somebody else's. A status is dropped, as the API server
// would drop it.
package manifest
